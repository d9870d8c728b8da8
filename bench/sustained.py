"""Five minutes at the seed's pace on the embedded store: memory and depth must not creep."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvloop

from angelhair.settings import DATABASE_NAME
from bench.chart import chart
from bench.over_http import check_file
from bench.paced import PacedLoad
from bench.processes import Running, embedded
from bench.sheet import Bar, Section, duration, table

PER_SECOND = 1_736
"""150 million messages a day."""

SECONDS = 300
SHORT_SECONDS = 12

SAMPLE_SECONDS = 5.0
SHORT_SAMPLE_SECONDS = 1.0

PRODUCERS = CONSUMERS = 64

MINUTES = 5
"""Into which the run is cut, however long it is; the second is compared with the last, for the first fills caches."""

KEPT_SHARE = 0.99
"""Of the pace, at least: the rest is the end of the run, when the last answers come."""

MEMORY_GROWTH = 1.10
"""The last minute's mean beside that of the second, at most."""

DEPTH_GROWTH = PER_SECOND / 10
"""Messages, the last minute's mean less that of the second, at most: a tenth of a second's worth."""

MEGABYTE = 1024 * 1024

SHOWN_ROWS = 12
"""Of the samples, in the report's table; the chart has all of them."""

CHART = "five-minutes"


@dataclass(frozen=True)
class Sample:
    seconds: float
    resident_megabytes: float
    depth: int
    """Put and not yet acked, by the server's own count."""
    file_megabytes: float


@dataclass
class Run:
    load: PacedLoad
    samples: list[Sample]
    seconds: float
    took_seconds: float
    """Until the last ack."""

    def mean(self, minute: int, read: Callable[[Sample], float]) -> float:
        length = self.seconds / MINUTES
        first = (minute - 1) * length
        return statistics.fmean(read(one) for one in self.samples if first <= one.seconds <= first + length)

    def put_ms(self, share: float) -> float:
        ordered = sorted(self.load.put_seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


def run(seconds: float, sample_seconds: float) -> Run:
    queue = f"q{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder:
        check_file(Path(folder))
        with embedded(folder) as running:
            running.create_queue(queue)
            load = PacedLoad(running.port, queue, PER_SECOND, PRODUCERS, CONSUMERS)
            began = time.perf_counter()
            samples = uvloop.run(_sampled(load, seconds, sample_seconds, lambda: _sample(running, folder, began)))
            return Run(load, samples, seconds, time.perf_counter() - began)


async def _sampled(load: PacedLoad, seconds: float, every: float, sample: Callable[[], Sample]) -> list[Sample]:
    began = time.perf_counter()
    samples: list[Sample] = []
    running = asyncio.create_task(load.run(seconds))
    while not running.done():
        await asyncio.wait([running], timeout=max(0.0, began + (len(samples) + 1) * every - time.perf_counter()))
        if not running.done():
            # On a thread: puts that are due meanwhile leave in time.
            samples.append(await asyncio.to_thread(sample))
    await running
    return samples


def _sample(running: Running, folder: str, began: float) -> Sample:
    metrics = running.metrics()
    size = sum(path.stat().st_size for path in Path(folder).glob(f"{DATABASE_NAME}*"))
    return Sample(
        time.perf_counter() - began,
        running.resident_bytes() / MEGABYTE,
        metrics.put - metrics.acked,
        size / MEGABYTE,
    )


def sustained_section(short: bool) -> Section:
    found = run(SHORT_SECONDS, SHORT_SAMPLE_SECONDS) if short else run(SECONDS, SAMPLE_SECONDS)
    memory = [found.mean(minute, lambda sample: sample.resident_megabytes) for minute in (2, MINUTES)]
    depths = [found.mean(minute, lambda sample: sample.depth) for minute in (2, MINUTES)]
    load = found.load
    bars = [
        Bar("five minutes: messages put, received and acked a second", load.acked / found.took_seconds,
            PER_SECOND * KEPT_SHARE, digits=0),
        Bar("five minutes: confirmed messages not acked", load.confirmed - load.acked, 0, True, digits=0),
        Bar("five minutes: memory, last minute / second", memory[1] / memory[0], MEMORY_GROWTH, True),
        Bar("five minutes: depth, last minute − second", depths[1] - depths[0], DEPTH_GROWTH, True, digits=0),
    ]
    curves = {
        "memory, MB": [(sample.seconds, sample.resident_megabytes) for sample in found.samples],
        "depth, messages": [(sample.seconds, float(sample.depth)) for sample in found.samples],
    }
    title = f"{PER_SECOND:,} messages a second for {duration(found.seconds)}"
    lines = [
        *_told(found),
        f"- memory, second minute and last: {memory[0]:.1f} MB, {memory[1]:.1f} MB; "
        f"depth: {depths[0]:.0f}, {depths[1]:.0f}",
        "",
        *_table(found),
        "",
        f"{{chart:{CHART}}}",
    ]
    return Section("Five minutes at the seed's pace, embedded", lines, bars, {CHART: chart(title, curves)})


def _told(found: Run) -> list[str]:
    load = found.load
    return [
        f"`angelhair serve --data`: {PER_SECOND:,} single puts a second, sent when they are due whatever became of the "
        f"last ones, over {PRODUCERS} connections; {CONSUMERS} consumers that wait, receive one message and ack it. "
        f"{duration(found.seconds)}; {load.issued:,} messages. Memory is resident, of all processes of the server; "
        "depth is what was put and not yet acked. What is finished stays in the file for the queue's history, a day.",
        "",
        f"- put and confirmed: {load.confirmed:,}; received and acked: {load.acked:,}; received again: "
        f"{sum(load.seen.values()) - len(load.seen):,}; {duration(found.took_seconds)} until the last ack",
        f"- from when a put was due to its confirmation: p50 {found.put_ms(0.5):.1f} ms, "
        f"p99 {found.put_ms(0.99):.1f} ms, at most {found.put_ms(1):.0f} ms",
    ]


def _table(found: Run) -> list[str]:
    step = max(1, len(found.samples) // SHOWN_ROWS)
    shown = dict.fromkeys([*found.samples[step - 1 :: step], *found.samples[-1:]])
    return table(
        ("second", "memory, MB", "depth, messages", "file, MB"),
        (
            (f"{one.seconds:.0f}", f"{one.resident_megabytes:.1f}", f"{one.depth:,}", f"{one.file_megabytes:,.0f}")
            for one in shown
        ),
    )


if __name__ == "__main__":
    section = sustained_section("--short" in sys.argv)
    print("\n".join([*section.text(), *map(str, section.bars)]))
