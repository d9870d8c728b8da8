"""Which messages somebody has been given: what a put that is tried again must not put twice (R10)."""

from __future__ import annotations

from collections.abc import Iterable

from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.settling import read_surely
from angelhair.engine.store import Span


async def given(lane: Lane, numbers: Iterable[int]) -> set[int]:
    """Those of the ids that were given out or moved, as long as their buckets are there to tell. See retire.py."""
    wanted = set(numbers)
    by_bucket: dict[int, list[int]] = {}
    for number in wanted:
        by_bucket.setdefault(lane.bucket_of(number), []).append(number)
    spans = [
        Span(lane.states(bucket), min(inside), max(inside), None, ("delivery", "settled"))
        for bucket, inside in by_bucket.items()
    ]
    found: set[int] = set()
    for part in await read_surely(lane.store, spans):
        for row in part.rows:
            if row.values.get("delivery") or row.values.get("settled") is not None:
                found.add(int(row.key))
    return found & wanted
