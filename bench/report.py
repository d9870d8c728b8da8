"""Writes what was proved into docs/proof. Every figure comes from what was kept; nothing is typed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from angelhair.simulation.campaign import KINDS, share
from bench import here
from bench.keeping import Kept
from bench.parts import PARTS, Amounts, seeds_part

SHOWN_FAILURES = 20

BARS = Amounts()

LEAST_SPARK_KILLS = 20

REACHED: dict[str, tuple[str, int]] = {
    **{seeds_part(kind): ("seeds", share(kind, BARS.seeds)) for kind in KINDS},
    "mutants": ("mutants", 12),
    "sqlite-kills": ("kills of a server", BARS.kills),
    "power-loss": ("states rebuilt", BARS.power_losses),
    "cluster-kills": ("servers under load, commitlog_sync batch: kills of all nodes", BARS.cluster_kills),
    "celery": ("tasks done", BARS.celery),
    "timelines": ("messages processed", BARS.timelines),
    "databags": ("messages delivered, each time at least", BARS.databags),
    "flat": ("SQLite: messages passed", BARS.flat),
    "databag-flat": ("messages passed", BARS.databag_flat),
    "signatures": ("mutations", BARS.mutations),
    "spark-kills": ("kills", LEAST_SPARK_KILLS),
    "spark-scale": ("messages audited", BARS.spark_scale),
}
"""By part: the figure that the bar is about, and the bar."""


def verdict(kept: Kept) -> str:
    if kept.failures:
        return "FAILED"
    figure, bar = REACHED[kept.name]
    reached = kept.figures.get(figure, 0)
    reached = len(reached) if isinstance(reached, list) else reached
    if kept.finished is None or reached < bar:
        return f"nothing failed, but the bar is {_number(bar)}"
    return "holds"


def write_report(parts: Sequence[Kept], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{here.today()}-{here.commit()}"
    for kept in parts:
        for name, drawing in kept.charts.items():
            (folder / f"{stem}-{name}.svg").write_text(drawing)
    path = folder / f"{stem}.md"
    path.write_text("\n".join(_lines(parts, stem)) + "\n")
    return path


def _lines(parts: Sequence[Kept], stem: str) -> list[str]:
    changed = here.changed_files()
    seconds = sum(kept.seconds for kept in parts)
    missing = [name for name in PARTS if name not in {kept.name for kept in parts}]
    lines = [
        f"# Proof of {here.commit()}",
        "",
        f"Written by `make prove` on {here.now()}.",
        "",
        f"- Commit: {here.commit()}" + (f", with {len(changed)} changed files" if changed else ""),
        f"- Machine: {here.machine()}",
        f"- Duration: {_duration(seconds)}",
    ]
    if missing:
        lines.append(f"- Not run: {', '.join(missing)}")
    lines += ["", "| Part | Verdict | Duration |", "|---|---|---|"]
    lines += [f"| {kept.name} | {verdict(kept)} | {_duration(kept.seconds)} |" for kept in parts]
    for kept in parts:
        lines += ["", f"## {kept.name}", "", PARTS[kept.name].run.__doc__ or "", ""]
        lines += [f"- {name}: {_number(figure)}" for name, figure in kept.figures.items()]
        lines.append(f"- failures: {len(kept.failures)}")
        lines += [f"  - {failure}" for failure in kept.failures[:SHOWN_FAILURES]]
        for name in kept.charts:
            lines += ["", f"![{kept.name}]({stem}-{name}.svg)"]
    return lines


def _number(figure: Any) -> str:
    if isinstance(figure, list):
        return f"{len(figure)} ({', '.join(map(str, figure))})"
    return f"{figure:,}" if isinstance(figure, int | float) else str(figure)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
