"""Which messages somebody has been given: what is tried again must not come twice (R7, R10).

An id that was reserved, and perhaps written, may be given up for another: its bucket was finished, it was purged, it
has expired unseen. By what one server sees; another may have read the marks before the purge, or have a clock that is
seconds behind, and hand it out all the same. So it is voided, by the conditional write that a claim would be: one of
the two comes too late, and knows.

First the row that speaks for the message (its key's, the ledger's, that of the source) names the new id, and the old
one as `before`; then that one is voided; then the message is written at the new one. Whoever goes on does the same. So
an id that such a row names is never void, and who slept over it does not get his own word into the row any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.dropped import sweep_dropped
from angelhair.engine.bucketed.examine import VOID
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.schema import STATE_DATES
from angelhair.engine.settling import change_one, read_surely
from angelhair.engine.store import Change, Refused, RowChange, Slice, Span, Values
from angelhair.errors import StoreError, Unavailable


async def given(lane: Lane, numbers: Iterable[int]) -> set[int]:
    """Those of the ids that were given out or moved, as long as their buckets are there to tell. See retire.py."""
    by_bucket = lane.by_bucket(numbers)
    found: set[int] = set()
    for inside, part in zip(by_bucket.values(), await _states(lane, by_bucket), strict=True):
        found.update(int(row.key) for row in part.rows if row.key in inside and _is_given(row.values))
    return found


async def voided(lane: Lane, numbers: Iterable[int]) -> set[int]:
    """Those of the ids that were given up for others."""
    by_bucket = lane.by_bucket(numbers)
    found: set[int] = set()
    for inside, part in zip(by_bucket.values(), await _states(lane, by_bucket), strict=True):
        found.update(int(row.key) for row in part.rows if row.key in inside and row.values.get("settled") == VOID)
    return found


async def void(lane: Lane, numbers: Iterable[int], now: Moment) -> set[int]:
    """Sees to it that nobody will be given these; returns those for which it is too late."""
    by_bucket = lane.by_bucket(numbers)
    found: set[int] = set()
    for (bucket, inside), part in zip(by_bucket.items(), await _states(lane, by_bucket), strict=True):
        if part.flags.get("finished") is None:
            part = await _voided(lane, bucket, sorted(inside), part, now)
        found.update(int(row.key) for row in part.rows if row.key in inside and _is_given(row.values))
    await sweep_dropped(lane, by_bucket)
    return found


async def _voided(lane: Lane, bucket: int, numbers: Sequence[int], states: Slice, now: Moment) -> Slice:
    """The states as they are when each of the ids is void, or was given, or the bucket is finished."""
    for begin in range(0, len(numbers), limits.CHANGE_ROWS):
        some = numbers[begin : begin + limits.CHANGE_ROWS]
        for _ in range(limits.ACK_ROUNDS):
            known = {row.key: row.values for row in states.rows}
            rows = [_voiding(number, known.get(number, {}), now) for number in some if _is_open(known.get(number, {}))]
            if not rows or states.flags.get("finished") is not None:
                break
            outcome = await change_one(lane.store, Change(lane.states(bucket), rows, expect_flags={"finished": None}))
            if isinstance(outcome, StoreError):
                raise outcome
            if not isinstance(outcome, Refused):
                break
            (states,) = await _states(lane, {bucket: set(numbers)})
        else:
            raise Unavailable("too many servers change these messages at once")
    return states


def _voiding(number: int, state: Values, now: Moment) -> RowChange:
    revision = state.get("revision")
    values: Values = {
        "delivery": 0, "revision": (revision if isinstance(revision, int) else 0) + 1, "settled": VOID,
        "settled_at": now.wall_ms,
    }
    return RowChange(number, {name: state.get(name) for name in ("delivery", "revision", "settled")}, values)


def _is_open(state: Values) -> bool:
    return not state.get("delivery") and state.get("settled") is None and state.get("erased_at") is None


def _is_given(state: Values) -> bool:
    return not _is_open(state) and state.get("settled") != VOID


async def _states(lane: Lane, by_bucket: dict[int, set[int]]) -> list[Slice]:
    spans = [
        Span(lane.states(bucket), min(inside), max(inside), None, STATE_DATES) for bucket, inside in by_bucket.items()
    ]
    return await read_surely(lane.store, spans)
