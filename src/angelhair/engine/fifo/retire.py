"""Retire: finished buckets go whole, behind the floor (A14, R14).

The floor is raised first, and nothing reads below it; then the rows go; then `dropped` follows. A bucket stays for the
queue's history, and as long as a key in it may still have to be known: a server that starts reads the keys of the
window back from the log (R10).
"""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.fifo.keys import Keys
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.marks import Marks, raise_mark
from angelhair.engine.schema import LOG_LIGHT
from angelhair.engine.store import Span


async def retire(lane: Lane, marks: Marks, trusted: bool) -> bool:
    """One portion. True when there may be more. Without a trusted clock only what is below the floor already goes."""
    if marks.dropped < marks.floor:
        return await _drop(lane, marks.dropped, min(marks.floor, marks.dropped + limits.DROP_BUCKETS))
    if not trusted:
        return False
    now_ms = await lane.time_ms()
    floor = marks.floor
    while floor < min(marks.repair, marks.floor + limits.DROP_BUCKETS) and await _is_over(lane, floor, now_ms):
        floor += 1
    if floor == marks.floor or not await raise_mark(lane, "floor", marks.floor, floor):
        return False
    return await _drop(lane, marks.dropped, floor)


async def _is_over(lane: Lane, bucket: int, now_ms: int) -> bool:
    last = lane.first_of(bucket + 1) - 1
    (found,) = await lane.store.read([Span(lane.log(bucket), last, last, None, LOG_LIGHT)])
    finished_at = found.flags.get("finished_at")
    newest_at = found.rows[0].values.get("enqueued_at") if found.rows else None
    if not isinstance(finished_at, int) or not isinstance(newest_at, int):
        return False
    # Once more the clocks' error: who looks a key up may be as wrong as we are.
    known_until = Keys(lane.settings, 0).horizon_ms(now_ms) - 2 * limits.CLOCK_ERROR_MS
    return finished_at + lane.settings.history_ms <= now_ms and newest_at < known_until


async def _drop(lane: Lane, first: int, last: int) -> bool:
    outcomes = await lane.store.drop([lane.log(bucket) for bucket in range(first, last)])
    if any(outcome is not None for outcome in outcomes):
        return False
    return await raise_mark(lane, "dropped", first, last)
