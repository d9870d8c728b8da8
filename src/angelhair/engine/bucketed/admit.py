"""Admission: a message whose bucket is already final gets its state row, in place, under its own id (A6, R1).

Every admission raises the bucket's `admitted` flag, and finishing a bucket is conditioned on that flag as it was
before the states were read: so no bucket is finished over a message that came in meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.settling import change_one, read_surely
from angelhair.engine.store import Applied, Change, RowChange, Span
from angelhair.errors import StoreError, Unavailable


class Arrival(NamedTuple):
    number: int
    enqueued_at: int
    delay: int


async def admit(lane: Lane, bucket: int, arrivals: Sequence[Arrival], now: Moment) -> set[int]:
    """Admits what is not there yet; returns the ids that can no longer be: their bucket is finished or dropped."""
    await wake.arm(lane, [(0, bucket), *((item.delay, bucket) for item in arrivals if item.delay)])
    states = lane.states(bucket)
    pending = {item.number: item for item in arrivals}
    (found,) = await read_surely(lane.store, [Span(states, min(pending), max(pending), None, ("delivery",))])
    flags = found.flags
    for row in found.rows:
        pending.pop(int(row.key), None)
    for _ in range(limits.ADMIT_ROUNDS):
        if not pending:
            lane.view.schedule(bucket, now.monotonic_ms)
            return set()
        if flags.get("final") is None or flags.get("finished") is not None:
            return set(pending)
        admitted = flags.get("admitted")
        batch = list(pending.values())[: limits.CHANGE_ROWS]
        outcome = await change_one(
            lane.store,
            Change(
                states,
                [_row(item) for item in batch],
                expect_flags={"final": 1, "finished": None, "admitted": admitted},
                set_flags={"admitted": (admitted if isinstance(admitted, int) else 0) + 1},
            ),
        )
        if isinstance(outcome, StoreError):
            raise outcome
        if isinstance(outcome, Applied):
            for item in batch:
                del pending[item.number]
            (found,) = await read_surely(lane.store, [Span(states, -1, -1)]) if pending else (found,)
            flags = found.flags
        else:
            # A row that is there was admitted, by repair or by an earlier try of ours: it is in.
            for key in outcome.rows:
                pending.pop(int(key), None)
            flags = outcome.flags
    raise Unavailable("too many servers admit messages into this bucket at once")


def _row(item: Arrival) -> RowChange:
    values = {
        "delivery": 0,
        "revision": 0,
        "visible_at": item.enqueued_at + item.delay,
        "duration": item.delay,
    }
    return RowChange(item.number, {"delivery": None}, values)
