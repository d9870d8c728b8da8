"""The part `spark-scale`: audit and insight of one, three and ten million messages, with the memory that they take."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from angelhair.settings import DATABASE_NAME
from angelhair.stores.sqlite import open_store
from bench.chart import chart
from bench.filling import BODY_BYTES, SETTINGS, Filling
from bench.processes import resident_bytes
from bench.spark_processes import SparkProcess
from bench.spark_scale_job import ARCHIVE, AUDIT, INSIGHT

SHARES = (0.1, 0.3, 1.0)

MOST_BYTES = 4 * 2**30
"""Resident, of the driver with its Java and of all workers, at any moment of audit and insight."""

GROWTH = 1.15
"""Of the time, beside what would be proportional, at most."""

DRIVER_GROWTH = 1.2
"""Of the driver's peak, Java's included, from the least messages to the most. Java takes what its heap may be and gives
little back, so its peak is seldom the same twice."""

START_SECONDS = 300
WORK_SECONDS = 7_200

SAMPLE_SECONDS = 0.25

MEGABYTE = 2**20

MEASURED = (AUDIT, INSIGHT)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    seconds: float
    job: str
    driver: int
    java: int
    workers: int

    @property
    def together(self) -> int:
        return self.driver + self.java + self.workers


@dataclass
class Size:
    messages: int
    seconds: dict[str, float] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Size:
        return cls(kept["messages"], kept["seconds"], [Sample(**sample) for sample in kept["samples"]])

    def peak(self, read: Callable[[Sample], int], jobs: Sequence[str] = MEASURED) -> int:
        return max((read(sample) for sample in self.samples if sample.job in jobs), default=0)


@dataclass
class Scale:
    sizes: list[Size]

    @classmethod
    def of(cls, kept: Sequence[dict[str, Any]]) -> Scale:
        return cls([Size.of(size) for size in kept])

    def figures(self) -> dict[str, Any]:
        found: dict[str, Any] = {"messages audited": self.sizes[-1].messages, "bytes of a body": BODY_BYTES}
        for size in self.sizes:
            name = f"{size.messages:,} messages"
            for job, seconds in size.seconds.items():
                found[f"{name}: {job}"] = f"{seconds:.1f} s, {size.messages / seconds:,.0f} messages/s"
            peaks = (_read_together, _read_driver, _read_python, _read_workers)
            together, driver, python, workers = (size.peak(read) / MEGABYTE for read in peaks)
            found[f"{name}: peak of memory in audit and insight"] = (
                f"{together:,.0f} MB together; driver {driver:,.0f} MB, of it Python {python:,.0f} MB; "
                f"workers {workers:,.0f} MB"
            )
        first, last = self.sizes[0], self.sizes[-1]
        for job in MEASURED:
            found[f"{job}: time beside proportional, from least to most"] = round(_growth(first, last, job), 2)
        found["driver's memory, from least to most"] = round(self._driver_growth, 2)
        return found

    @property
    def _driver_growth(self) -> float:
        return self.sizes[-1].peak(_read_driver) / max(1, self.sizes[0].peak(_read_driver))

    def complaints(self) -> list[str]:
        first = self.sizes[0]
        said = []
        for size in self.sizes:
            if (peak := size.peak(_read_together)) > MOST_BYTES:
                said.append(f"{size.messages:,} messages took {peak / MEGABYTE:,.0f} MB")
            said += [
                f"{job} of {size.messages:,} messages took {growth:.2f} × what is proportional"
                for job in MEASURED
                if (growth := _growth(first, size, job)) > GROWTH
            ]
        if self._driver_growth > DRIVER_GROWTH:
            said.append(f"the driver's memory grew {self._driver_growth:.2f} ×")
        return said

    def charts(self) -> dict[str, str]:
        times = {
            f"{job}, s": [(0.0, 0.0), *((float(size.messages), size.seconds[job]) for size in self.sizes)]
            for job in (ARCHIVE, *MEASURED)
        }
        last = self.sizes[-1]
        reads = {"together, MB": _read_together, "driver, MB": _read_driver, "workers, MB": _read_workers}
        memory = {
            name: [(sample.seconds, read(sample) / MEGABYTE) for sample in last.samples]
            for name, read in reads.items()
        }
        return {
            "spark-scale-time": chart("Archive, audit and insight: seconds by messages", times, "messages"),
            "spark-scale-memory": chart(f"Memory while {last.messages:,} messages are looked at", memory),
        }


def _growth(first: Size, size: Size, job: str) -> float:
    return size.seconds[job] / first.seconds[job] / (size.messages / first.messages)


def _read_together(sample: Sample) -> int:
    return sample.together


def _read_driver(sample: Sample) -> int:
    return sample.driver + sample.java


def _read_python(sample: Sample) -> int:
    return sample.driver


def _read_workers(sample: Sample) -> int:
    return sample.workers


def sizes(most: int) -> list[int]:
    """Whole buckets."""
    bucket = SETTINGS.bucket_size
    return [max(bucket, int(most * share) // bucket * bucket) for share in SHARES]


@contextmanager
def growing(progress: Progress) -> Iterator[Growing]:
    with tempfile.TemporaryDirectory() as folder:
        yield Growing(Path(folder), progress)


class Growing:
    """A queue that grows, all of whose messages are acked. Every look at it has a lake of its own, so that nothing was
    archived or counted before."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self._folder, self._progress = folder, progress
        self._queue = ""
        self._messages = 0

    def looked_at(self, messages: int) -> Size:
        asyncio.run(self._grown(messages - self._messages))
        self._messages = messages
        size = Size(messages)
        lake = str(self._folder / f"lake{messages}")
        with SparkProcess(["-m", "bench.spark_scale_job", str(self._folder), self._queue, lake]) as process:
            process.wait_for("begun", START_SECONDS)
            self._watched(process, size)
            process.wait_for("done", START_SECONDS)
            for line in process.said:
                name, _, seconds = line.partition(" ")
                if seconds:
                    size.seconds[name] = float(seconds)
        return size

    async def _grown(self, messages: int) -> None:
        def tell(what: str) -> Callable[[int], None]:
            return lambda done: self._progress(f"{done:,} of {messages:,} more messages {what}")

        filling = Filling(await open_store(self._folder / DATABASE_NAME))
        self._queue = self._queue or await filling.create()
        await filling.put(self._queue, messages, tell("put"))
        await filling.ack(self._queue, messages, tell("acked"))
        await filling.finish(self._queue)
        await filling.store.close()

    def _watched(self, process: SparkProcess, size: Size) -> None:
        began = time.monotonic()
        while not process.is_over:
            if time.monotonic() - began > WORK_SECONDS:
                raise RuntimeError(f"it goes on and on: {process.complaint()}")
            job = next((line for line in reversed(process.said) if line in (ARCHIVE, *MEASURED)), "")
            size.samples.append(_sample(process, time.monotonic() - began, job))
            self._progress(f"{size.messages:,} messages, {job}, {size.samples[-1].together / MEGABYTE:,.0f} MB")
            time.sleep(SAMPLE_SECONDS)


def _sample(process: SparkProcess, seconds: float, job: str) -> Sample:
    everyone = set(process.everyone())
    java = set(process.java())
    workers = everyone - java - {process.pid}
    return Sample(
        seconds, job, resident_bytes(process.pid), sum(map(resident_bytes, java)), sum(map(resident_bytes, workers))
    )
