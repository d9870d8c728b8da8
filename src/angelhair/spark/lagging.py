"""How far a stream is behind, as a query's progress shows it beside the latest offset.

Spark gives a Python source one place for it: what `reportLatestOffset` returns goes into the progress as it is, and
into no checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from angelhair.engine import places
from angelhair.engine.catalog import Reading
from angelhair.engine.schema import BODY_DATES
from angelhair.engine.store import Span
from angelhair.spark.planning import LaneShape, QueueShape

LOOK_AHEAD_BUCKETS = 4
"""Buckets in which the oldest message is looked for. Those before it have none only if all their puts failed."""


async def lag(
    store: Reading, shape: QueueShape, isolation: str, taken: Mapping[int, int], now_ms: int
) -> dict[str, Any]:
    """By lane: messages that could be read and were not taken yet; messages that are there and cannot be read yet, by
    this isolation; and for how many seconds the oldest of both has been there."""
    told: dict[str, dict[str, float]] = {"messages": {}, "unsettled": {}, "seconds": {}}
    for lane in shape.lanes:
        name, end = str(lane.number), shape.end_of(lane, isolation)
        first = max(taken.get(lane.number, 0), shape.start_of(lane))
        told["messages"][name] = max(0, end - first)
        told["unsettled"][name] = max(0, lane.next_id - max(first, end))
        put_at = await _oldest(store, shape, lane, first)
        told["seconds"][name] = 0 if put_at is None else max(0, now_ms - put_at) / 1000
    return told


async def _oldest(store: Reading, shape: QueueShape, lane: LaneShape, first: int) -> int | None:
    size = shape.bucket_size
    buckets = range(first // size, min(first // size + LOOK_AHEAD_BUCKETS, -(-lane.next_id // size)))
    spans = [
        Span(places.bodies(shape.incarnation, lane.number, bucket), first, None, 1, BODY_DATES)
        for bucket in buckets
    ]
    for found in await store.read(spans) if spans else ():
        for row in found.rows:
            if isinstance(put_at := row.values.get("enqueued_at"), int):
                return put_at
    return None
