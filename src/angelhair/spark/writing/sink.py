"""`df.write.format("angelhair")` and `writeStream`: rows become messages, each once.

A task puts its rows in blocks. Before a block is put, a row of the queue's ledger says so (`engine/ledger`), under the
name of the write and the task's partition: of a stream its query and batch, of a batch its `writeId`. A task that is
tried again, after a crash or beside a slow twin, finds the row and goes on: in a bucketed queue at the same ids, in a
fifo queue by the same keys. So nothing hangs on Spark's commit, which only counts.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.ledger import Run, accept_all
from angelhair.engine.store import Store
from angelhair.errors import InvalidRequest
from angelhair.identities import RandomIdentities
from angelhair.spark.looking import Looking
from angelhair.spark.writing.options import BLOCK_BYTES, WriteOptions
from angelhair.spark.writing.rows import Block, blocks, checked

_log = logging.getLogger(__name__)

Step = Callable[[str], None]
"""Told when a block is begun, put and done, in a test that ends a task there."""


def quietly(_: str) -> None:
    """For who does not want to be told."""


@dataclass
class Written(WriterCommitMessage):
    """What one task did."""

    messages: int = 0
    blocks: int = 0
    repeated: int = 0
    """Messages of blocks that an earlier try had put."""
    known: int = 0
    """Rows left out, as their key was there."""

    def add(self, other: Written) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class QueueWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        checked(schema)
        self._options = options
        self._write_id = options.write_id or uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        partition = _context().partitionId()
        return put_all(self._options, f"batch/{self._write_id}/{partition}", iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _tell("written", self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What was put stays: consumers may have it."""
        _tell("given up, after this was written", self._options, messages)


class QueueStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        checked(schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = _context()
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise InvalidRequest("writeStream", "which query and batch this is, Spark does not say")
        return put_all(self._options, f"stream/{query}/{batch}/{context.partitionId()}", iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        _tell(f"batch {batchId} written", self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """What was put stays; Spark writes the same batch again, and the ledger knows it."""
        _tell(f"batch {batchId} given up, after this was written", self._options, messages)


def put_all(
    options: WriteOptions, writer: str, batches: Iterator[pa.RecordBatch], step: Step = quietly
) -> Written:
    """All rows of one task. Running it again with the same rows puts nothing twice."""
    done = Written()
    started = monotonic()
    window_ms = options.retry_window_seconds * 1000
    with Looking(options.place, changing=True) as looking:
        engine = looking.run(_engine)
        kind = looking.run(partial(_kind, engine, options))
        for number, block in enumerate(made_ahead(blocks(batches, options.block_messages, BLOCK_BYTES))):
            # Before it is begun: what was refused can be written under the same name when it is put right.
            block.check_for(kind)
            run = Run(writer, number, block.messages, block.digest, window_ms)
            done.add(looking.run(partial(_put, engine, options, run, block, step)))
            if options.most_a_second is not None:
                sleep(max(0.0, started + (done.messages + done.repeated) / options.most_a_second - monotonic()))
    return done


def made_ahead(made: Iterator[Block]) -> Iterator[Block]:
    """The next block is made while the store is busy with this one."""
    with ThreadPoolExecutor(1, "blocks") as beside:
        following = beside.submit(next, made, None)
        while (block := following.result()) is not None:
            following = beside.submit(next, made, None)
            yield block


async def _engine(store: Store) -> Engine:
    return Engine(store, RandomIdentities(), SystemClock())


async def _kind(engine: Engine, options: WriteOptions, _: Store) -> str:
    return (await engine.find_queue(options.account, options.queue)).settings.kind


async def _put(engine: Engine, options: WriteOptions, run: Run, block: Block, step: Step, _: Store) -> Written:
    step("begin")
    begun = await engine.begin_run(options.account, options.queue, run)
    step("begin done")
    if begun is None:
        return Written(repeated=block.messages, blocks=1)
    step("put")
    accept = partial(_refuse, block) if options.fails_on_conflict else accept_all
    known = await engine.finish_run(begun, block.as_messages(begun.enqueued_at), accept)
    step("put done")
    return Written(messages=block.messages - len(known), blocks=1, known=len(known))


def _refuse(block: Block, known: set[int]) -> None:
    if known:
        raise InvalidRequest(
            "onConflict", f"the queue has {len(known)} of the rows already, such as the one with the key "
            f"{block.key_of(min(known))!r}"
        )


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "a task has a context"
    return context


def _tell(what: str, options: WriteOptions, messages: list[WriterCommitMessage | None]) -> None:
    total = Written()
    for message in messages:
        if isinstance(message, Written):
            total.add(message)
    _log.info(
        "%s to %s: %d messages in %d blocks; %d had been written by an earlier try, %d keys were known", what,
        options.queue, total.messages, total.blocks, total.repeated, total.known,
    )
