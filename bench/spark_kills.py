"""The stages of the part `spark-kills`: drivers and tasks of archive, batch and stream, killed -9 while they work.

In every round there is new work, a job that does it and is killed at some moment, and the same job once more, to its
end. What the lake and the target queue hold is counted after the last round.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from angelhair.engine.store import Store
from angelhair.limits import BATCH_MESSAGES
from angelhair.model import Ask, QueueSettings
from angelhair.settings import ACCOUNT, DATABASE_NAME
from angelhair.spark.lakes import table_place
from angelhair.stores.sqlite import open_store
from bench.cassandra_node import cassandra_node
from bench.filling import Filling, body
from bench.spark_job import ARCHIVE, BATCH, JOBS, STREAM, Job
from bench.spark_processes import LOOK_SECONDS, SparkProcess
from cluster.testing import connected_store

MESSAGES_A_ROUND = 4_000

SETTINGS = QueueSettings(bucket_size=100, repair_timeout_ms=100, archive=True, retention_ms=None)

DRIVER, TASK = "driver", "task"

START_SECONDS = 300
"""More than a session takes to start on a busy machine."""

WORK_SECONDS = 900

FIRST_LIFE_SECONDS = 3.0
"""How long after its first task a job is killed, at most; where that was too late, half as long the next time."""

MISSES = 10
"""Kills that came too late before the part gives up."""

Figures = dict[str, Any]
Progress = Callable[[str], None]


@dataclass
class Toll:
    kills: Counter[str] = field(default_factory=Counter)
    points: list[str] = field(default_factory=list)
    messages: int = 0
    missed: int = 0
    complaints: list[str] = field(default_factory=list)

    def figures(self) -> Figures:
        return {
            "kills": self.kills.total(),
            "of drivers": self.kills[DRIVER],
            "of tasks": self.kills[TASK],
            "too late": self.missed,
            "messages": self.messages,
            "where": self.points,
            "wrong": len(self.complaints),
        }


@dataclass(frozen=True)
class Stage:
    kind: str
    store: str

    @property
    def title(self) -> str:
        return f"{self.kind} on {self.store}"

    def run(self, world: World, kills: int, progress: Progress) -> Toll:
        return asyncio.run(self._run(world, kills, progress))

    async def _run(self, world: World, kills: int, progress: Progress) -> Toll:
        toll = Toll()
        with tempfile.TemporaryDirectory() as folder:
            async with world.opened(Path(folder)) as (store, options):
                filling = Filling(store)
                source, target = await filling.create(SETTINGS), await filling.create()
                killing = _Killing(self, filling, options, source, target, folder)
                while toll.kills.total() < kills:
                    progress(f"{self.title}: {toll.kills.total()} of {kills} kills")
                    await killing.round(toll)
                toll.complaints += await killing.complaints(toll.messages)
        return toll


class _Killing:
    """One stage at work."""

    def __init__(
        self, stage: Stage, filling: Filling, options: dict[str, str], queue: str, target: str, folder: str
    ) -> None:
        self._stage, self._filling, self._options = stage, filling, options
        self._queue, self._target = queue, target
        self._lake = str(Path(folder) / "made")
        self._life_seconds = FIRST_LIFE_SECONDS

    async def round(self, toll: Toll) -> None:
        seed = toll.kills.total() + toll.missed
        dice = random.Random(f"{self._stage.title} {seed}")
        job = await self._work(toll.messages)
        toll.messages += MESSAGES_A_ROUND
        victim = (DRIVER, TASK)[toll.kills.total() % 2]
        point = await asyncio.to_thread(self._killed_and_done, job, victim, dice)
        if point is None:
            toll.missed += 1
            self._life_seconds /= 2
            if toll.missed > MISSES:
                raise RuntimeError(f"{self._stage.title}: the jobs are over before anything can be killed")
        else:
            toll.kills[victim] += 1
            toll.points.append(f"seed {seed}: {victim}, {point}")

    async def _work(self, first: int) -> Job:
        """New messages in the source queue, acked and finished; or new rows."""
        job = Job(self._stage.kind, self._options, self._queue, self._target, self._lake, first, MESSAGES_A_ROUND)
        if job.kind != BATCH:
            await self._filling.put(self._queue, MESSAGES_A_ROUND)
            await self._filling.ack(self._queue, MESSAGES_A_ROUND)
            await self._filling.finish(self._queue)
        return job

    def _killed_and_done(self, job: Job, victim: str, dice: random.Random) -> str | None:
        """Where the job was when it was killed, in words; None if it was over before. The same job is run again at
        once, to its end: what a dead driver has left behind may still be at work."""
        with SparkProcess(["-m", "bench.spark_job", job.as_text()]) as process:
            point = self._killed(process, victim, dice)
            with SparkProcess(["-m", "bench.spark_job", job.as_text()]) as again:
                again.wait_for("done", START_SECONDS + WORK_SECONDS)
            return point

    def _killed(self, process: SparkProcess, victim: str, dice: random.Random) -> str | None:
        process.wait_for("begun", START_SECONDS)
        began = time.monotonic()
        while not process.workers() and not process.is_over:
            time.sleep(LOOK_SECONDS)
        time.sleep(dice.uniform(0, self._life_seconds))
        killed = process.kill_driver() if victim == DRIVER else process.kill_worker(dice.random())
        moment, last = time.monotonic() - began, process.said[-1]
        if victim == TASK and killed:
            # Spark tries the task again, and so the job may come to its end all the same.
            process.wait_until_over(WORK_SECONDS)
        return f"{moment:.2f} s, {last}" if killed else None

    # --- what came of it ----------------------------------------------------------------------------------------------

    async def complaints(self, messages: int) -> list[str]:
        if self._stage.kind == ARCHIVE:
            (marks,) = (await self._filling.engine.marks(ACCOUNT, self._queue)).values()
            end = marks.repair * SETTINGS.bucket_size
            place = table_place(self._lake, self._queue)
            table = await asyncio.to_thread(lambda: DeltaTable(place).to_pyarrow_table(columns=["number"]))
            found = Counter(table.column("number").to_pylist())
            said = _differences(Counter(range(end)), found)
            if marks.archived != marks.repair or end != messages:
                said.append(f"of {messages} messages {end} are finished, up to bucket {marks.repair}: {marks}")
            return said
        wanted = (body(number) if self._stage.kind == STREAM else b"row %d" % number for number in range(messages))
        return _differences(Counter(wanted), await self._received())

    async def _received(self) -> Counter[bytes]:
        found: Counter[bytes] = Counter()
        engine = self._filling.engine
        while True:
            (taken,) = await engine.receive(ACCOUNT, self._target, [Ask(BATCH_MESSAGES)])
            assert isinstance(taken, list), taken
            if not taken:
                return found
            found.update(delivery.body for delivery in taken)
            await engine.ack(ACCOUNT, self._target, [delivery.receipt for delivery in taken])


def _differences(wanted: Counter[Any], found: Counter[Any]) -> list[str]:
    missing, more = wanted - found, found - wanted
    return [
        f"{counter.total()} {word}, such as {next(iter(counter))!r}"
        for word, counter in (("missing", missing), ("too many", more))
        if counter
    ]


# --- where the queues are ---------------------------------------------------------------------------------------------


class World:
    """Stores for stages, one after the other."""

    def __init__(self, opened: Callable[[Path], Any]) -> None:
        self._opened = opened

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[tuple[Store, dict[str, str]]]:
        store, options = await self._opened(folder)
        try:
            yield store, options
        finally:
            await store.close()


@contextmanager
def on_file() -> Iterator[World]:
    async def opened(folder: Path) -> tuple[Store, dict[str, str]]:
        return await open_store(folder / DATABASE_NAME), {"data": str(folder)}

    yield World(opened)


@contextmanager
def on_cassandra() -> Iterator[World]:
    with cassandra_node() as node:

        async def opened(_: Path) -> tuple[Store, dict[str, str]]:
            points = {"contactPoints": ",".join(node.contact_points), "keyspace": node.keyspace}
            return await connected_store(node.cluster, node.keyspace), points

        yield World(opened)


STORES: dict[str, Callable[[], Any]] = {"SQLite": on_file, "Cassandra": on_cassandra}

STAGES = [Stage(kind, store) for store in STORES for kind in JOBS]
