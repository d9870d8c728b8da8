"""A timeline as a table: which parts of time there are, which of them filters leave, and what a message is in Spark.

Rows lie in parts of time, found by the index that consumers find them by; a part that a filter on `due_at` leaves out
is never asked for. Nothing is taken away, and no lock is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import Filter, InputPartition

from angelhair import limits
from angelhair.clock import SystemClock
from angelhair.engine import places
from angelhair.engine.catalog import Queue, Reading
from angelhair.engine.store import Span
from angelhair.spark.columns import ACKED, DELAYED, QUEUE, TIME, WAITING, arrow_schema_of
from angelhair.spark.options import ReadOptions, refuse_marks
from angelhair.spark.points import Times
from angelhair.spark.pruning import times_of
from angelhair.spark.reading.dues import read_parts
from angelhair.spark.shaping import payload_of

STORED = {
    "body": "body", "attributes": "attributes", "origin": "origin", "enqueued_at": "enqueued_at", "due": "due",
    "deliveries": "deliveries",
}
"""Columns for which more than the key is read."""

SAME = ("attributes", "origin")
MOMENTS = ("enqueued_at", "due")


class Shard(NamedTuple):
    lane: int
    last: str
    """The checkpoint: what is up to this key is processed."""
    parts: tuple[int, ...]


class TimelineShape(NamedTuple):
    incarnation: str
    part_ms: int
    shards: tuple[Shard, ...]


class TimelinePartition(InputPartition):
    """Some parts of one shard."""

    def __init__(self, shard: Shard, incarnation: str, part_ms: int, now_ms: int) -> None:
        super().__init__(shard)
        self.shard = shard
        self.incarnation = incarnation
        self.part_ms = part_ms
        self.now_ms = now_ms


async def partitions(
    store: Reading, queue: Queue, options: ReadOptions, filters: Sequence[Filter]
) -> list[InputPartition]:
    refuse_marks(options, "timeline", "due_at")
    return _planned(options, await _look(store, queue, filters))


async def _look(store: Reading, queue: Queue, filters: Sequence[Filter]) -> TimelineShape:
    # A row's time is what was wanted, or later: by what was wanted only what is too early can be left out.
    wanted = times_of(filters, "due")._replace(end_ms=None)
    times = times_of(filters, "due_at").and_within(wanted)
    part_ms = queue.settings.part_ms
    shards = []
    for lane in sorted(queue.lanes):
        (found,) = await store.read([Span(places.shard(queue.incarnation, lane))])
        last = found.rows[0].values.get("last") if found.rows else None
        parts = await _parts(store, queue, lane, times)
        shards.append(Shard(lane, last if isinstance(last, str) else "", tuple(parts)))
    return TimelineShape(queue.incarnation, part_ms, tuple(shards))


async def _parts(store: Reading, queue: Queue, lane: int, times: Times) -> list[int]:
    """Those that may hold messages, in order."""
    part_ms, size = queue.settings.part_ms, limits.TIMELINE_SPAN_PARTS
    first = 0 if times.first_ms is None else max(0, times.first_ms // part_ms)
    last = None if times.end_ms is None else (times.end_ms - 1) // part_ms
    spans = await _numbers(store, Span(places.spans(queue.incarnation, lane)))
    found: list[int] = []
    for span in spans:
        if span >= first // size and (last is None or span <= last // size):
            found += await _numbers(store, Span(places.parts(queue.incarnation, lane, span)))
    return [part for part in found if part >= first and (last is None or part <= last)]


async def _numbers(store: Reading, span: Span) -> list[int]:
    """Each once: a row of the index has its number in front."""
    (found,) = await store.read([span])
    return list(dict.fromkeys(int(str(row.key).partition(".")[0]) for row in found.rows))


def _planned(options: ReadOptions, shape: TimelineShape) -> list[InputPartition]:
    """Never an empty list: Spark would make a partition of its own of that, which nobody could read."""
    now_ms = SystemClock().now().wall_ms
    total = sum(len(shard.parts) for shard in shape.shards)
    length = max(1, min(options.most_buckets, total // max(1, options.min_partitions)))
    pieces = [
        shard._replace(parts=shard.parts[begin : begin + length])
        for shard in shape.shards
        for begin in range(0, len(shard.parts), length)
    ]
    return [
        TimelinePartition(piece, shape.incarnation, shape.part_ms, now_ms) for piece in pieces or [Shard(0, "", ())]
    ]


def read(options: ReadOptions, partition: TimelinePartition) -> Iterator[pa.RecordBatch]:
    names = ("key", *(name for name in STORED if name in options.columns))
    shard = partition.shard
    for raw in read_parts(options.place, partition.incarnation, shard.lane, shard.parts, names, partition.now_ms):
        columns = [_column(raw, name, options.payload, partition) for name in options.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema_of(options.columns, options.payload))


def _column(raw: pa.RecordBatch, name: str, payload: str, partition: TimelinePartition) -> pa.Array:
    keys, lane = raw.column("key"), partition.shard.lane
    if name in SAME:
        return raw.column(name)
    if name in MOMENTS:
        return pc.multiply(raw.column(name), 1000).cast(TIME)
    if name == "id":
        return pc.binary_join_element_wise(str(lane), keys, "-")
    if name == "lane":
        return pa.repeat(pa.scalar(lane, pa.int32()), len(raw))
    if name == "body":
        return payload_of(raw.column("body"), payload)
    if name == "deliveries":
        return pc.fill_null(raw.column("deliveries"), 0).cast(pa.int32())
    if name == "kept_in":
        return pa.repeat(pa.scalar(QUEUE, pa.string()), len(raw))
    if name == "due_at":
        return pc.multiply(_times(keys), 1000).cast(TIME)
    if name == "bucket":
        return pc.divide(_times(keys), partition.part_ms)
    if name == "state":
        later = pc.greater(_times(keys), partition.now_ms)
        words = pc.if_else(later, DELAYED, WAITING)
        return pc.if_else(pc.less_equal(keys, partition.shard.last), ACKED, words)
    return pa.nulls(len(raw), arrow_schema_of([name], payload).field(name).type)


def _times(keys: pa.Array) -> pa.Array:
    """The first 48 bits of a time UUID are milliseconds."""
    return pa.array([int(key[:8] + key[9:13], 16) for key in keys.to_pylist()], pa.int64())
