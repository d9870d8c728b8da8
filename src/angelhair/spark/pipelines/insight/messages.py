"""Which messages a batch is made of, and where they are read: what the lake has there, the rest from the queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.spark.history import lake_ends, lake_table, queue_table
from angelhair.spark.place import Place
from angelhair.spark.planning import QueueShape


class Source(NamedTuple):
    """A queue and its lake."""

    spark: SparkSession
    place: Place
    shape: QueueShape
    lake: str
    """The queue's table there."""


def planned(shape: QueueShape, in_lake: dict[int, int], done: dict[int, int], most: int) -> dict[int, tuple[int, int]]:
    """By lane: finished buckets that nobody has looked at. What was dropped before, and is in no lake, is passed over.
    """
    wanted = {}
    left = most
    for lane in shape.lanes:
        first = done.get(lane.number, 0)
        if first >= in_lake.get(lane.number, 0):
            first = max(first, lane.floor)
        end = min(max(lane.repair, in_lake.get(lane.number, 0)), first + left)
        if end > first:
            wanted[lane.number] = (first, end)
            left -= end - first
    return wanted


def messages(source: Source, lanes: dict[int, tuple[int, int]], columns: Sequence[str]) -> DataFrame:
    """Of these buckets. What a queue drops meanwhile fails the read: the next job finds it in the lake, or passes over
    it."""
    spark, shape, lake = source.spark, source.shape, source.lake
    size = shape.bucket_size
    ends = lake_ends(lake, shape.incarnation, list(lanes))
    spans = {lane: (first * size, end * size) for lane, (first, end) in lanes.items()}
    borders = {lane: min(max(first, ends.get(lane, 0) * size), end) for lane, (first, end) in spans.items()}
    parts = []
    archived = lake_table(spark, lake)
    from_lake = [(lane, first, borders[lane]) for lane, (first, _) in spans.items() if borders[lane] > first]
    if archived is not None and from_lake:
        marks = spark.createDataFrame(from_lake, "lane int, first bigint, end bigint")
        rows = archived.where(f.col("incarnation") == shape.incarnation).join(f.broadcast(marks), "lane")
        parts.append(rows.where("number >= first and number < end").select(*columns))
    from_queue = {lane: (borders[lane], end) for lane, (_, end) in spans.items() if end > borders[lane]}
    if from_queue or not parts:
        parts.append(_in_queue(source, from_queue, columns))
    return parts[0].unionByName(parts[1]) if len(parts) > 1 else parts[0]


def unfinished(source: Source, done: dict[int, int], columns: Sequence[str]) -> DataFrame:
    """What is in no batch yet, as it is now."""
    shape = source.shape
    spans = {
        lane.number: (max(done.get(lane.number, 0), lane.floor) * shape.bucket_size, lane.next_id)
        for lane in shape.lanes
    }
    return _in_queue(source, spans, columns, failOnDataLoss="false")


def _in_queue(
    source: Source, spans: dict[int, tuple[int, int]], columns: Sequence[str], **options: str
) -> DataFrame:
    spark, place, shape, _ = source
    # A lane that is not named would be read whole.
    all_spans = {lane.number: spans.get(lane.number, (0, 0)) for lane in shape.lanes}
    start, end = (json.dumps({str(lane): span[at] for lane, span in all_spans.items()}) for at in (0, 1))
    return queue_table(spark, place, shape.account, shape.name, columns, start=start, end=end, **options)
