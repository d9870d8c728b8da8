"""Many seeds, on all cores, with one line at the end; resumable when a file keeps what was done."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from angelhair.model import BUCKETED, DATABAG, FIFO, TIMELINE
from angelhair.simulation.fair_variation import FAIR
from angelhair.simulation.run import TOPICS, Judged, run_seed

KINDS = (BUCKETED, FIFO, FAIR, TOPICS, TIMELINE, DATABAG)
"""Worlds that can be played, by what is in their queues."""

AS_MANY_TOGETHER = (FIFO, FAIR, TOPICS)

CHUNK = 4
"""Seeds that a worker takes at a time: few, so that the slow ones spread."""


@dataclass(slots=True)
class Campaign:
    """The sum of what was played so far."""

    seeds: int = 0
    operations: int = 0
    faults: int = 0
    steps: int = 0
    seconds: float = 0.0
    kinds: list[str] = field(default_factory=list)
    failed: dict[int, list[str]] = field(default_factory=dict)

    def add(self, judged: Judged) -> None:
        self.seeds += 1
        self.operations += judged.operations
        self.faults += judged.faults
        self.steps += judged.steps
        self.kinds = sorted({*self.kinds, *judged.fault_kinds})
        if judged.violations:
            self.failed[judged.seed] = list(judged.violations)

    def closing_line(self) -> str:
        violations = sum(len(found) for found in self.failed.values())
        return (
            f"simulated: {self.seeds} seeds, {self.operations} operations, {self.faults} faults, "
            f"{violations} violations"
        )


def share(kind: str, seeds: int) -> int:
    """Of so many: bucketed queues get them all; fifo queues, fair ones and topics as many together; others as each."""
    return seeds if kind == BUCKETED else -(-seeds // len(AS_MANY_TOGETHER))


def replay_line(seed: int, kind: str = BUCKETED) -> str:
    return f"angelhair simulate --replay {seed}" + ("" if kind == BUCKETED else f" --kind {kind}")


def _begin() -> None:
    """In each worker. Ctrl-C reaches the whole group of processes; only the parent answers it, by ending the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    # What is there before the first seed stays: it need not be looked through after every one.
    gc.freeze()


def play(
    seeds: Iterable[int],
    processes: int | None = None,
    progress: Callable[[Campaign], None] | None = None,
    kind: str = BUCKETED,
) -> Campaign:
    """Plays the seeds; a seed that breaks the world counts as a violation."""
    campaign = Campaign()
    began = time.monotonic()
    count = processes or os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    with context.Pool(count, initializer=_begin) as pool:
        for judged in pool.imap_unordered(partial(_judge, kind), seeds, chunksize=CHUNK):
            campaign.add(judged)
            campaign.seconds = time.monotonic() - began
            if progress is not None:
                progress(campaign)
    return campaign


def _judge(kind: str, seed: int) -> Judged:
    try:
        judged = run_seed(seed, kind=kind)
    except Exception as error:  # noqa: BLE001 - whatever broke the world is what the seed has found
        judged = Judged(seed, 0, 0, 0, (f"broken: {type(error).__name__}: {error}",), ())
    # The collector is off while a seed is played: its pauses cost more than what a seed leaves behind.
    gc.collect()
    return judged


def save(campaign: Campaign, path: Path, next_seed: int) -> None:
    """Written beside and renamed, so that a campaign that is cut off can go on."""
    temporary = path.with_suffix(".partial")
    temporary.write_text(json.dumps({"next_seed": next_seed, "campaign": asdict(campaign)}))
    temporary.replace(path)


def resume(path: Path) -> tuple[Campaign, int]:
    if not path.exists():
        return Campaign(), 0
    kept = json.loads(path.read_text())
    campaign = Campaign(**kept["campaign"])
    campaign.failed = {int(seed): found for seed, found in campaign.failed.items()}
    return campaign, int(kept["next_seed"])
