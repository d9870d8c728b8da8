"""Retire: finished buckets go whole, behind the floor (A14, R14).

The floor is raised first, and nothing reads below it; then the bodies go, then the states; then `dropped` follows. A
worker that dies in between leaves the rest to the next one.
"""

from __future__ import annotations

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.marks import Marks, raise_mark
from angelhair.engine.store import Span, Values


async def retire(lane: Lane, marks: Marks, now: Moment, trusted: bool) -> bool:
    """One portion. True when there may be more. Without a trusted clock only what is below the floor already goes."""
    if marks.dropped < marks.floor:
        return await _drop(lane, marks.dropped, min(marks.floor, marks.dropped + limits.DROP_BUCKETS))
    if not trusted:
        return False
    last = marks.repair
    if lane.settings.archive:
        last = min(last, marks.archived)
    buckets = range(marks.floor, min(last, marks.floor + limits.DROP_BUCKETS))
    if not buckets:
        return False
    # The oldest first, by itself: mostly it is to stay, and then so are the others.
    over = await _over(lane, buckets[:1], now)
    if over:
        over += await _over(lane, buckets[1:], now)
    floor = marks.floor + over
    if floor == marks.floor:
        return False
    # The operator may be moving the repair mark back: of the two moves one must see the other.
    if not await raise_mark(lane, "floor", marks.floor, floor, while_at=("repair", marks.repair)):
        return False
    return await _drop(lane, marks.dropped, floor)


async def _over(lane: Lane, buckets: range, now: Moment) -> int:
    """How many of these finished buckets, from the first on, need not be kept any longer."""
    over = 0
    for part in await lane.store.read([Span(lane.states(bucket), -1, -1) for bucket in buckets]):
        finished_at = part.flags.get("finished_at")
        if not isinstance(finished_at, int) or _kept_until(lane, finished_at, part.flags) > now.wall_ms:
            break
        over += 1
    return over


def _kept_until(lane: Lane, finished_at: int, flags: Values) -> int:
    """How long a finished bucket stays.

    As long as a key may still say "pending" and name an id in it, the bucket must be there to tell whether that id was
    delivered (R10). Two clocks may differ by twice their allowed error.
    """
    history_ends, keys_lapse = finished_at + lane.settings.history_ms, flags.get("keyed")
    if not isinstance(keys_lapse, int):
        return history_ends
    return max(history_ends, keys_lapse + 2 * limits.CLOCK_ERROR_MS)


async def _drop(lane: Lane, first: int, last: int) -> bool:
    buckets = range(first, last)
    for partitions in ([lane.bodies(bucket) for bucket in buckets], [lane.states(bucket) for bucket in buckets]):
        if any(outcome is not None for outcome in await lane.store.drop(partitions)):
            return False
    return await raise_mark(lane, "dropped", first, last)
