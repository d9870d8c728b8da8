"""Erase: what a message says goes from the queue, now, wherever it stands (for who must forget).

Its place stays, so that every id is accounted for: settled as `erased` if it was not settled yet, and from then on no
consumer is given it. Then body, attributes and origin are overwritten, and read back: a store that goes by clocks may
prefer what a producer with a fast clock wrote. Who has received it before has it.
"""

from __future__ import annotations

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed.examine import MOVING
from angelhair.engine.bucketed.lane import Lane, read_marks
from angelhair.engine.settling import change_one, must_write, read_surely
from angelhair.engine.store import Applied, Change, Row, RowChange, Span, Values, Write
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable

ERASED = "erased"

NOTHING: Values = {"body": b"", "attributes": None, "origin": None}


async def erase(lane: Lane, number: int, now: Moment) -> bool:
    """False when there is no such message. Repeating it does no harm."""
    bucket = lane.bucket_of(number)
    if bucket < (await read_marks(lane)).floor:
        return False
    for _ in range(limits.ACK_ROUNDS):
        bodies, states = await read_surely(
            lane.store, [Span(lane.bodies(bucket), number, number), Span(lane.states(bucket), number, number)]
        )
        if not bodies.rows:
            return False
        state = states.rows[0].values if states.rows else {}
        if await _settle(lane, bucket, number, state, now):
            break
    else:
        raise Unavailable("too many servers change this message at once")
    try:
        return await _overwritten(lane, bucket, number)
    except Unavailable as error:
        # It is settled by now: that something happened has to be said.
        raise OutcomeUnknown(str(error)) from error


async def _overwritten(lane: Lane, bucket: int, number: int) -> bool:
    for _ in range(limits.SETTLE_ATTEMPTS):
        await must_write(lane.store, [Write(lane.bodies(bucket), [Row(number, NOTHING)])])
        (left,) = await read_surely(lane.store, [Span(lane.bodies(bucket), number, number)])
        if all(not row.values.get(name) for row in left.rows for name in NOTHING):
            return True
    raise OutcomeUnknown("the store keeps what an earlier write with a later time says: a clock is wrong; try again")


async def _settle(lane: Lane, bucket: int, number: int, state: Values, now: Moment) -> bool:
    """A change of its body lies with its state, and goes too."""
    settled = state.get("settled")
    if settled == MOVING:
        raise Unavailable("the message is being moved to another queue: erase it there")
    if settled is not None and state.get("body") is None:
        return True
    expect = {name: state.get(name) for name in ("delivery", "revision", "settled")}
    values: Values = {"body": None}
    if settled is None:
        revision = state.get("revision")
        values = {
            **values, "settled": ERASED, "settled_at": now.wall_ms, "delivery": state.get("delivery") or 0,
            "revision": (revision if isinstance(revision, int) else 0) + 1,
        }
    outcome = await change_one(lane.store, Change(lane.states(bucket), [RowChange(number, expect, values)]))
    if isinstance(outcome, StoreError):
        raise outcome
    return isinstance(outcome, Applied)
