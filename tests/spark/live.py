"""Queues for the tests of Spark: an engine on a real store, in real time, and the options by which Spark finds it."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition

from angelhair.clock import Moment, SystemClock
from angelhair.engine import places
from angelhair.engine.engine import Engine
from angelhair.engine.store import Row, Store, Write
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings
from angelhair.settings import ACCOUNT, DATABASE_NAME
from angelhair.spark.options import ReadOptions
from angelhair.spark.planning import look
from angelhair.stores.sqlite import open_store
from tests.queues import Identities

R = TypeVar("R")

PATIENCE_SECONDS = 60
QUICK = {"bucket_size": 10, "repair_timeout_ms": 100}
"""Settings of a queue whose buckets are soon final."""


class WhileAgo:
    """The clock of a server at which messages came a while ago."""

    def __init__(self) -> None:
        self.ago_ms = 0

    def now(self) -> Moment:
        true = SystemClock().now()
        return true._replace(wall_ms=true.wall_ms - self.ago_ms)


class StoreThen:
    """A store in the same time: a server asks it, too, what time it is."""

    def __init__(self, store: Store, then: WhileAgo) -> None:
        self._then = then
        self.read, self.write, self.change = store.read, store.write, store.change
        self.drop, self.close = store.drop, store.close

    async def time_ms(self) -> int:
        return self._then.now().wall_ms


@dataclass
class Live:
    runner: asyncio.Runner
    store: Store
    options: dict[str, str]
    """Where the queues are, as Spark is told."""

    def __post_init__(self) -> None:
        self.engine = Engine(self.store, Identities(), SystemClock())
        self._then = WhileAgo()
        self._engine_then = Engine(StoreThen(self.store, self._then), Identities(), self._then)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        return self.runner.run(work)

    def create(self, **settings: Any) -> str:
        name = f"q{uuid.uuid4().hex[:12]}"
        self.run(self.engine.create_queue(ACCOUNT, name, QueueSettings(**settings)))
        return name

    def put(self, queue: str, messages: Sequence[NewMessage]) -> list[MessageId]:
        ids = []
        for start in range(0, len(messages), 1_000):
            for outcome in self.run(self.engine.put(ACCOUNT, queue, messages[start : start + 1_000])):
                assert isinstance(outcome, MessageId), outcome
                ids.append(outcome)
        return ids

    def put_ago(self, queue: str, ago_ms: int, messages: Sequence[NewMessage]) -> None:
        """As if they had been put so long ago."""
        self._then.ago_ms = ago_ms
        for outcome in self.run(self._engine_then.put(ACCOUNT, queue, messages)):
            assert isinstance(outcome, MessageId), outcome

    def reserve(self, queue: str, count: int) -> None:
        """Ids that a put takes and does not write."""
        self.run(self.engine.reserve(ACCOUNT, queue, count))

    def write_late(self, queue: str, number: int, put_at_ms: int) -> None:
        """A message under an id of lane 0 that was reserved long ago."""
        shape = self.run(look(self.store, ACCOUNT, queue))
        row = Row(number, {"body": b"late", "enqueued_at": put_at_ms})
        partition = places.bodies(shape.incarnation, 0, number // shape.bucket_size)
        assert self.run(self.store.write([Write(partition, [row])])) == [None]

    def receive(self, queue: str, count: int, visibility_ms: int | None = None) -> list[Delivery]:
        (answer,) = self.run(self.engine.receive(ACCOUNT, queue, [Ask(count, visibility_ms)]))
        assert isinstance(answer, list), answer
        return answer

    def ack(self, queue: str, deliveries: Sequence[Delivery]) -> None:
        outcomes = self.run(self.engine.ack(ACCOUNT, queue, [delivery.receipt for delivery in deliveries]))
        assert outcomes == [None] * len(deliveries)

    def drain(self, queue: str, count: int) -> None:
        """Receives and acks so many."""
        while count:
            taken = self.receive(queue, min(count, 100))
            assert taken
            self.ack(queue, taken)
            count -= len(taken)

    def work_until(self, queue: str, mark: str, bucket: int, lane: int = 0) -> None:
        """Background work, until a mark of the lane stands there."""
        end = time.monotonic() + PATIENCE_SECONDS
        while getattr(self.run(self.engine.marks(ACCOUNT, queue))[lane], mark) < bucket:
            assert time.monotonic() < end, f"{mark} does not reach {bucket}"
            self.run(self.engine.step(ACCOUNT, queue))
            self.receive(queue, 1, 0)
            time.sleep(0.02)


def table(spark: SparkSession, live: Live, queue: str, **options: Any) -> DataFrame:
    reader = spark.read.format("angelhair").options(**live.options).option("queue", queue)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def numbers(frame: DataFrame) -> list[int]:
    return [row.number for row in frame.select("number").orderBy("number").collect()]


def read_options(live: Live, queue: str, streaming: bool = False, **more: str) -> ReadOptions:
    lowered = {name.lower(): value for name, value in {**live.options, **more}.items()}
    return ReadOptions.of({**lowered, "queue": queue}, streaming=streaming)


def rows_scanned(frame: DataFrame) -> int:
    """Rows that the source handed to Spark for it, before Spark tested any, by Spark's own count."""
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()  # type: ignore[operator]
    leaves = plan.collectLeaves()
    assert leaves.size() == 1
    return int(leaves.apply(0).metrics().apply("numOutputRows").value())


def elsewhere(work: Callable[..., R], *arguments: Any) -> R:
    """In another process, as a task is: two copies of SQLite must not meet in one."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def numbers_read(reader: DataSourceReader, partition: InputPartition) -> list[int]:
    return [number for batch in reader.read(partition) for number in batch.column("number").to_pylist()]  # type: ignore[union-attr]


@contextmanager
def on_file(folder: Path) -> Iterator[Live]:
    with asyncio.Runner() as runner:
        store = runner.run(open_store(folder / DATABASE_NAME))
        yield Live(runner, store, {"data": str(folder)})
        runner.run(store.close())


@contextmanager
def on_cassandra() -> Iterator[Live]:
    from cluster.testing import connected_store, shared_cluster, shared_keyspace

    with asyncio.Runner() as runner:
        keyspace = runner.run(shared_keyspace())
        store = runner.run(connected_store(shared_cluster(), keyspace))
        points = ",".join(shared_cluster().contact_points)
        yield Live(runner, store, {"contactPoints": points, "keyspace": keyspace})
        runner.run(store.close())
