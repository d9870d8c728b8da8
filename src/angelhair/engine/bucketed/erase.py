"""Erase: what a message says goes from the queue, now, wherever it stands (for who must forget).

    1. raise the lane's mark `erased` over its id
    2. note in its state that it was erased; and settle it as `erased`, unless it is settled or its bucket is finished:
       from now on no consumer is given it
    3. overwrite body, attributes and origin, and read back: a store that goes by clocks may prefer what a producer with
       a fast clock wrote

Its place stays, so that every id is accounted for. Who has received it before has it. A writer that slept, of a run, of
a key, of a move, may write the same row again: below the mark it looks at the state after it has written, and if that
was erased it overwrites what it wrote. If it dies before that, repair overwrites it when it finishes the bucket, and
who reads finished buckets goes by the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.dropped import sweep_dropped
from angelhair.engine.bucketed.examine import ERASED, MOVING
from angelhair.engine.bucketed.lane import Lane, read_marks
from angelhair.engine.marks import pointer_marks
from angelhair.engine.settling import begun, change_one, must_write, read_surely
from angelhair.engine.store import Applied, Change, Row, RowChange, Slice, Span, Values, Write
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable

NOTHING: Values = {"body": b"", "attributes": None, "origin": None}


async def erase(lane: Lane, number: int, now: Moment) -> bool:
    """False when there is no such message. Repeating it does no harm."""
    bucket = lane.bucket_of(number)
    if bucket < (await read_marks(lane)).floor:
        return False
    place = [Span(lane.bodies(bucket), number, number), Span(lane.states(bucket), number, number)]
    bodies, states = await read_surely(lane.store, place)
    if not bodies.rows:
        return False
    await _warn_writers(lane, number)
    done = await _settle(lane, bucket, number, states, now)
    # From here on it may be settled.
    with begun():
        for _ in range(limits.ACK_ROUNDS):
            if done:
                break
            bodies, states = await read_surely(lane.store, place)
            done = not bodies.rows or await _settle(lane, bucket, number, states, now)
        if not done:
            raise Unavailable("too many servers change this message at once")
        if bodies.rows:
            await _overwritten(lane, bucket, number)
    return bool(bodies.rows)


async def overwrite(lane: Lane, bucket: int, numbers: Sequence[int]) -> None:
    await must_write(lane.store, [Write(lane.bodies(bucket), [Row(number, NOTHING) for number in numbers])])
    await sweep_dropped(lane, [bucket])


async def overwrite_erased(lane: Lane, numbers: Iterable[int]) -> None:
    """Of messages that were just written: those that had been erased before are overwritten again."""
    by_bucket = lane.by_bucket(numbers)
    spans = [
        Span(lane.states(bucket), min(inside), max(inside), columns=("delivery", "erased_at"))
        for bucket, inside in by_bucket.items()
    ]
    for (bucket, inside), part in zip(by_bucket.items(), await read_surely(lane.store, spans), strict=True):
        erased = {int(row.key) for row in part.rows if row.values.get("erased_at") is not None}
        if again := inside & erased:
            await overwrite(lane, bucket, sorted(again))


async def _overwritten(lane: Lane, bucket: int, number: int) -> None:
    for _ in range(limits.SETTLE_ATTEMPTS):
        await overwrite(lane, bucket, [number])
        (left,) = await read_surely(lane.store, [Span(lane.bodies(bucket), number, number)])
        if all(not row.values.get(name) for row in left.rows for name in NOTHING):
            return
    raise OutcomeUnknown("the store keeps what an earlier write with a later time says: a clock is wrong; try again")


async def _warn_writers(lane: Lane, number: int) -> None:
    """Raises the mark. A lane that is older than this mark has no row of it."""
    for _ in range(limits.ACK_ROUNDS):
        (pointers,) = await read_surely(lane.store, [Span(lane.pointers)])
        marks = pointer_marks(pointers)
        if marks.erased > number:
            return
        seen = next((row.values.get("value") for row in pointers.rows if row.key == "erased"), None)
        rows = [
            RowChange("erased", {"value": seen}, {"value": number + 1}),
            # A lane that is gone by now has no floor, and is not to get a mark.
            RowChange("floor", {"value": marks.floor}, {"value": marks.floor}),
        ]
        outcome = await change_one(lane.store, Change(lane.pointers, rows))
        if isinstance(outcome, StoreError):
            raise Unavailable(str(outcome)) from outcome
    raise Unavailable("the marks of this lane move faster than one of them could be raised")


async def _settle(lane: Lane, bucket: int, number: int, states: Slice, now: Moment) -> bool:
    """A change of its body lies with its state, and goes too."""
    state = states.rows[0].values if states.rows else {}
    settled, finished = state.get("settled"), states.flags.get("finished")
    if settled == MOVING:
        raise Unavailable("the message is being moved to another queue: erase it there")
    if state.get("erased_at") is not None and state.get("body") is None:
        return True
    expect = {name: state.get(name) for name in ("delivery", "revision", "settled")}
    values: Values = {"body": None, "erased_at": now.wall_ms}
    # In a finished bucket nothing is given out any more, and what became of its messages stays as it is.
    if settled is None and finished is None:
        revision = state.get("revision")
        values = {
            **values, "settled": ERASED, "settled_at": now.wall_ms, "delivery": state.get("delivery") or 0,
            "revision": (revision if isinstance(revision, int) else 0) + 1,
        }
    change = Change(lane.states(bucket), [RowChange(number, expect, values)], expect_flags={"finished": finished})
    outcome = await change_one(lane.store, change)
    if isinstance(outcome, StoreError):
        raise outcome
    return isinstance(outcome, Applied)
