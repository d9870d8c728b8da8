"""Where a read begins and ends: at a mark, at ids, or at a time.

Ids of a lane grow in the order in which they were reserved, and times nearly so. Two servers' clocks may differ, and an
id that one put reserved may be written by another, with the same idempotency key, as long as repair waits for it. So a
time chooses buckets with some to spare, found by halving, and the rows of those are then held against it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.catalog import Reading
from angelhair.engine.schema import BODY_DATES
from angelhair.engine.store import Span
from angelhair.errors import InvalidRequest
from angelhair.spark.planning import LaneShape, QueueShape

EARLIEST, LATEST, ARCHIVED = "earliest", "latest", "archived"
MARKS = (EARLIEST, LATEST, ARCHIVED)

SPARE_MS = 2 * limits.CLOCK_ERROR_MS
"""By so much may what was put later seem to be older."""


def begins_after_ms(time_ms: int, shape: QueueShape) -> int:
    """What was put from then on is in buckets that begin after this, or in the last that does not."""
    return time_ms - SPARE_MS - shape.repair_timeout_ms


def begins_before_ms(time_ms: int) -> int:
    """What was put before is in buckets that begin until then."""
    return time_ms + SPARE_MS


class Times(NamedTuple):
    """Milliseconds, from the first on and before the end; None: without a bound."""

    first_ms: int | None = None
    end_ms: int | None = None

    def and_within(self, other: Times) -> Times:
        firsts = [first for first in (self.first_ms, other.first_ms) if first is not None]
        ends = [end for end in (self.end_ms, other.end_ms) if end is not None]
        return Times(max(firsts, default=None), min(ends, default=None))


class Point(NamedTuple):
    """One of the three."""

    mark: str | None = None
    ids: tuple[tuple[int, int], ...] = ()
    """By lane. Lanes that are not named begin at the earliest and end at the latest."""
    time_ms: int | None = None

    async def ids_in(self, store: Reading, shape: QueueShape, isolation: str, last: bool) -> dict[int, int]:
        """By lane: the id that it stands for. `last`: it is where a read ends, which is behind what is asked for."""
        return {lane.number: await self._id_in(store, shape, lane, isolation, last) for lane in shape.lanes}

    async def _id_in(self, store: Reading, shape: QueueShape, lane: LaneShape, isolation: str, last: bool) -> int:
        start, end = shape.start_of(lane), shape.end_of(lane, isolation)
        if self.time_ms is not None:
            wanted = begins_before_ms(self.time_ms) if last else begins_after_ms(self.time_ms, shape)
            buckets = range(start // shape.bucket_size, -(-end // shape.bucket_size))
            begin = await first_bucket(buckets, wanted, last, lambda bucket: _put_at(store, shape, lane, bucket))
            return min(end, max(start, begin * shape.bucket_size))
        if self.mark == EARLIEST:
            return start
        if self.mark == LATEST:
            return end
        if self.mark == ARCHIVED:
            return min(end, max(start, lane.archived * shape.bucket_size))
        return dict(self.ids).get(lane.number, end if last else start)


async def first_bucket(
    buckets: range, time_ms: int, last: bool, put_at: Callable[[int], Awaitable[int | None]]
) -> int:
    """Where to begin so that all that was put from then on is there; or, at the end, so that all before is."""
    low, high = buckets.start, buckets.stop
    while low < high:
        middle = (low + high) // 2
        begun = await put_at(middle)
        # A bucket without any message tells nothing. So the half is taken that reads more: what is too much is left
        # out later.
        if last if begun is None else begun <= time_ms:
            low = middle + 1
        else:
            high = middle
    # `low` is the first bucket that begins after the time: what was put before may reach into the one before it.
    return low if last else max(buckets.start, low - 1)


async def _put_at(store: Reading, shape: QueueShape, lane: LaneShape, bucket: int) -> int | None:
    """When the oldest of a bucket was put: its first id may have been written last."""
    (found,) = await store.read([Span(places.bodies(shape.incarnation, lane.number, bucket), columns=BODY_DATES)])
    times = [value for row in found.rows if isinstance(value := row.values.get("enqueued_at"), int)]
    return min(times, default=None)


def point(option: str, text: str) -> Point:
    """`earliest`, `latest`, `archived`, ids as {"0": 1200, "1": 700}, or a time as 2026-01-31T12:00:00Z."""
    word = text.strip()
    if word.lower() in MARKS:
        return Point(mark=word.lower())
    if word.startswith("{"):
        return Point(ids=_ids(option, word))
    try:
        time = datetime.fromisoformat(word)
    except ValueError:
        raise InvalidRequest(
            option, f"{text!r} is none of {', '.join(MARKS)}, nor ids such as {{\"0\": 17}}, nor a time"
        ) from None
    return Point(time_ms=round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000))


def _ids(option: str, text: str) -> tuple[tuple[int, int], ...]:
    try:
        found = json.loads(text)
        ids = tuple(sorted((int(lane), number) for lane, number in found.items()))
    except ValueError:
        raise InvalidRequest(option, f"{text!r} is not an id for each lane, such as {{\"0\": 17}}") from None
    if not all(type(number) is int and number >= 0 for _, number in ids):
        raise InvalidRequest(option, "ids are whole numbers from 0 on")
    return ids
