"""`python -m bench`: every rate and every bar, with durable confirmations or not at all; writes one dated report.

Take the ratios, not the figures: both sides of a ratio were measured in the same minute on the same machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import here
from bench.databag_tuning import databags_section
from bench.engine import cassandra_engine_section, sqlite_engine_section
from bench.over_cassandra import cassandra_section
from bench.over_http import embedded_section
from bench.over_spark import spark_section
from bench.over_spark_cassandra import spark_cassandra_section
from bench.over_sqs import sqs_section
from bench.several_servers import servers_section
from bench.sheet import BAR_HEADINGS, Section, Unsafe, duration, table
from bench.sustained import sustained_section

PARTS: Mapping[str, Callable[[bool], Section]] = {
    "engine-sqlite": sqlite_engine_section,
    "engine-cassandra": cassandra_engine_section,
    "embedded": embedded_section,
    "cassandra": cassandra_section,
    "sqs": sqs_section,
    "servers": servers_section,
    "sustained": sustained_section,
    "databags": databags_section,
    "spark": spark_section,
    "spark-cassandra": spark_cassandra_section,
}
"""What can be measured, each with a short way for a trial."""

FOLDER = here.ROOT / "docs" / "benchmarks"

QUIET = 0.5
"""Programs that want a core before anything is measured, at most; beyond that the figures are others' too."""


class Began(NamedTuple):
    when: str
    busy: float


def names(text: str) -> list[str]:
    chosen = text.split(",")
    for name in chosen:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(PARTS)}")
    return [name for name in PARTS if name in chosen]


def report(sections: Mapping[str, Section], began: Began, stem: str) -> str:
    """The whole report. Every figure comes from a section."""
    changed = here.changed_files()
    missing = [name for name in PARTS if name not in sections]
    lines = [
        f"# Benchmarks of {here.commit()}",
        "",
        f"Written by `make bench`, begun on {began.when}. Take the ratios; [how to read it](README.md).",
        "",
        f"- Commit: {here.commit()}" + (f", with {len(changed)} changed files" if changed else ""),
        f"- Machine: {here.machine()}; before it began, {began.busy:.1f} programs wanted a core",
        f"- Duration: {duration(sum(section.seconds for section in sections.values()))} ("
        + ", ".join(f"{name} {duration(section.seconds)}" for name, section in sections.items())
        + ")",
        *([f"- Not run: {', '.join(missing)}"] if missing else []),
        "",
    ]
    if bars := [bar.row for section in sections.values() for bar in section.bars]:
        lines += [*table(BAR_HEADINGS, bars), ""]
    for section in sections.values():
        for line in section.text():
            for name in section.charts:
                line = line.replace(f"{{chart:{name}}}", f"![{section.title}]({stem}-{name}.svg)")
            lines.append(line)
    return "\n".join(lines).rstrip("\n") + "\n"


def write(sections: Mapping[str, Section], began: Began, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stem = _free_stem(folder)
    for section in sections.values():
        for name, drawing in section.charts.items():
            (folder / f"{stem}-{name}.svg").write_text(drawing)
    path = folder / f"{stem}.md"
    path.write_text(report(sections, began, stem))
    return path


def _free_stem(folder: Path) -> str:
    """Date and commit; a number with it where this commit has a report of today already, such as of other parts."""
    stem, number = f"{here.today()}-{here.commit()}", 1
    while (folder / f"{stem}.md").exists():
        number += 1
        stem = f"{here.today()}-{here.commit()}-{number}"
    return stem


def measured(chosen: Sequence[str], short: bool) -> dict[str, Section]:
    sections: dict[str, Section] = {}
    for name in chosen:
        began = time.monotonic()
        print(f"{name}: …", flush=True)
        section = sections[name] = PARTS[name](short)
        section.seconds = time.monotonic() - began
        print("\n".join([*section.text(), *map(str, section.bars), ""]), flush=True)
    return sections


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=names, default=list(PARTS), metavar="PART,…", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--short", action="store_true", help="a trial of seconds; its figures are not kept")
    parser.add_argument("--report-folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    began = Began(here.now(), here.busy())
    if began.busy > QUIET:
        print(f"others are busy here ({began.busy:.1f} programs want a core): what follows is worth little", flush=True)
    try:
        sections = measured(options.only, options.short)
    except Unsafe as refusal:
        print(refusal, file=sys.stderr)
        return 1
    if not options.short:
        print(f"report: {write(sections, began, options.report_folder)}")
    missed = [bar for section in sections.values() for bar in section.bars if not bar.met]
    for bar in missed:
        print(bar, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
