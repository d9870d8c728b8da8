"""A databag as a table: which epochs there are, which of them filters leave, and what a message is in Spark.

Rows lie under a block and an epoch of it; one read brings the epochs of all blocks. An id says in which of them it
lies, so a filter on one reads that one. Nothing is taken away, and nothing is locked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import Filter, InputPartition

from angelhair.clock import SystemClock
from angelhair.engine import places
from angelhair.engine.catalog import Queue, Reading
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.lane import LANE
from angelhair.engine.databag.lock import ID_BYTES
from angelhair.engine.marks import QueueGone
from angelhair.engine.store import Span
from angelhair.errors import QueueNotFound
from angelhair.spark import missing
from angelhair.spark.columns import ACKED, EXPIRED, IN_FLIGHT, PURGED, QUEUE, TIME, WAITING, arrow_schema_of
from angelhair.spark.options import ReadOptions, refuse_marks
from angelhair.spark.pruning import narrowed_piece
from angelhair.spark.reading.bags import RAW, Found, Piece, read_pieces
from angelhair.spark.shaping import payload_of

Numbers = npt.NDArray[np.int64]

STORED = {
    "body": ("body",), "attributes": ("attributes",), "origin": ("origin",), "settled_at": ("deleted",),
    "visible_at": ("deleted",), "state": ("deleted",),
}
"""Columns for which more than id and date is read."""

LOCKED = ("state", "visible_at")
"""Columns for which the locks are read, too."""


class BagPartition(InputPartition):
    """Some epochs, of one block or several."""

    def __init__(self, pieces: tuple[Piece, ...], incarnation: str, retention_ms: int | None, now_ms: int) -> None:
        super().__init__(pieces)
        self.pieces = pieces
        self.incarnation = incarnation
        self.retention_ms = retention_ms
        self.now_ms = now_ms


async def partitions(
    store: Reading, queue: Queue, options: ReadOptions, filters: Sequence[Filter]
) -> list[InputPartition]:
    """Never an empty list: Spark would make a partition of its own of that, which nobody could read."""
    refuse_marks(options, "databag", "enqueued_at")
    pieces = await _look(store, queue, filters)
    now_ms, retention_ms = SystemClock().now().wall_ms, queue.settings.retention_ms
    length = max(1, min(options.most_buckets, len(pieces) // max(1, options.min_partitions)))
    cut = [tuple(pieces[begin : begin + length]) for begin in range(0, len(pieces), length)]
    return [BagPartition(some, queue.incarnation, retention_ms, now_ms) for some in cut or [()]]


async def _look(store: Reading, queue: Queue, filters: Sequence[Filter]) -> list[Piece]:
    """Block by block, so that a task reads the locks of few."""
    (found,) = await store.read([Span(places.bag_epochs(queue.incarnation))])
    pieces: list[Piece] = []
    for row in found.rows:
        try:
            epochs = epochs_of.parse(row.values)
        except QueueGone:
            raise QueueNotFound(queue.account, queue.name) from None
        unfinished = set(epochs.read)
        for number in epochs.there:
            whole = Piece.whole(int(row.key), number)
            left = narrowed_piece(whole, epochs.open, number not in unfinished, filters)
            if left is not None:
                pieces.append(left)
    return pieces


def read(options: ReadOptions, partition: BagPartition) -> Iterator[pa.RecordBatch]:
    wanted = {"number", "enqueued_at"}.union(*(STORED.get(name, ()) for name in options.columns))
    names = tuple(name for name in RAW.names if name in wanted)
    with_locks = any(name in LOCKED for name in options.columns)

    def lost(piece: Piece) -> None:
        if options.fail_on_data_loss:
            raise missing.dropped_epoch(piece.block, piece.epoch)

    for found in read_pieces(options.place, partition.incarnation, partition.pieces, names, with_locks, lost):
        columns = [_column(found, name, options.payload, partition) for name in options.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema_of(options.columns, options.payload))


def _column(found: Found, name: str, payload: str, partition: BagPartition) -> pa.Array:
    raw, count = found.rows, len(found.rows)
    if name in ("number", "attributes", "origin"):
        return raw.column(name)
    if name == "body":
        return payload_of(raw.column("body"), payload)
    if name == "id":
        return pc.binary_join_element_wise(str(LANE), raw.column("number").cast(pa.string()), "-")
    if name == "lane":
        return pa.repeat(pa.scalar(LANE, pa.int32()), count)
    if name == "bucket":
        return pa.repeat(pa.scalar(found.piece.bucket, pa.int64()), count)
    if name == "enqueued_at":
        return _moments(raw.column("enqueued_at"))
    if name == "settled_at":
        return _moments(raw.column("deleted"))
    if name == "visible_at":
        return _visible_at(found, partition)
    if name == "state":
        return _states(found, partition)
    if name == "kept_in":
        return pa.repeat(pa.scalar(QUEUE, pa.string()), count)
    # Deliveries are not counted, nothing is delayed and nothing moved.
    return pa.nulls(count, arrow_schema_of([name], payload).field(name).type)


def _moments(milliseconds: pa.Array) -> pa.Array:
    return pc.multiply(milliseconds, 1000).cast(TIME)


def _states(found: Found, partition: BagPartition) -> pa.Array:
    """What a consumer would find now. What is left in a finished epoch was past its retention when it was finished, or
    it was purged."""
    raw = found.rows
    words: pa.Array
    if found.finished_at_ms is None:
        over_at_ms = partition.now_ms
        given = np.isin(_numbers(raw), _given(found, partition.now_ms))
        words = pc.if_else(pa.array(given), IN_FLIGHT, WAITING)
    else:
        over_at_ms = found.finished_at_ms
        words = pa.repeat(pa.scalar(PURGED, pa.string()), len(raw))
    if partition.retention_ms is not None:
        over = pc.less_equal(raw.column("enqueued_at"), over_at_ms - partition.retention_ms)
        words = pc.if_else(over, EXPIRED, words)
    return pc.if_else(raw.column("deleted").is_valid(), ACKED, words)


def _visible_at(found: Found, partition: BagPartition) -> pa.Array:
    """When the lock ends behind which a message is, be it that one that was given or another."""
    locks = _holding(found, partition.now_ms)
    until_ms = np.array([0, *(lock.until_ms for lock in found.locks)], dtype=np.int64)
    by_row = until_ms[locks[_slices(_numbers(found.rows))] + 1]
    waits = pc.is_in(_states(found, partition), pa.array([WAITING, IN_FLIGHT]))
    return _moments(pc.if_else(pc.and_(waits, pa.array(by_row > 0)), pa.array(by_row), None))


def _given(found: Found, now_ms: int) -> Numbers:
    """Which ids the block's locks were made for, as far as they hold them now."""
    locks = _holding(found, now_ms)
    given = [np.frombuffer(lock.given, dtype=f">i{ID_BYTES}").astype(np.int64) for lock in found.locks]
    held = [some[locks[_slices(some)] == place] for place, some in enumerate(given)]
    return np.concatenate(held) if held else np.empty(0, dtype=np.int64)


def _holding(found: Found, now_ms: int) -> Numbers:
    """For each slice of the block, which of its locks holds it now; -1 where none does. Of two that overlap the later
    serving counts: it was made when the earlier one was over."""
    holding = np.full(ids.BLOCK_SLICES, -1, dtype=np.int64)
    for place, lock in sorted(enumerate(found.locks), key=lambda each: each[1].serving):
        first, last = lock.first % ids.BLOCK_SLICES, lock.last % ids.BLOCK_SLICES
        holding[first : last + 1] = place if lock.until_ms > now_ms else -1
    return holding


def _numbers(raw: pa.RecordBatch) -> Numbers:
    numbers: Numbers = raw.column("number").to_numpy()
    return numbers


def _slices(numbers: Numbers) -> Numbers:
    """Of each id its slice, counted from the beginning of the block."""
    return numbers // ids.first_of(1) % ids.BLOCK_SLICES
