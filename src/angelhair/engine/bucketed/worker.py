"""One lane's background work, as steps: whoever holds the lane's lease repairs, keeps the index and retires (A11)."""

from __future__ import annotations

from dataclasses import dataclass, field

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.bucketed.keep import KeepMemory, keep_index
from angelhair.engine.bucketed.lane import Lane, read_marks
from angelhair.engine.bucketed.repair import RepairMemory, close_expired, finish_low, make_final
from angelhair.engine.bucketed.retire import retire
from angelhair.engine.leases import Lease
from angelhair.engine.marks import Marks


@dataclass(slots=True)
class Worker:
    lease: Lease
    repair: RepairMemory = field(default_factory=RepairMemory)
    index: KeepMemory = field(default_factory=KeepMemory)

    @classmethod
    def of(cls, lane: Lane) -> Worker:
        return cls(Lease(places.leases(lane.incarnation, lane.number), "repair", lane.server))


async def step(
    lane: Lane, worker: Worker, trusted: bool, losing: frozenset[str] = frozenset()
) -> tuple[int, Marks | None]:
    """One step of the lane's work if this server is elected. Returns when to come back, in ms, and the marks.

    `losing`: servers from which this one is taken: they hold so many of the queue's lanes, or are gone.
    """
    reluctant_ms = None if trusted else limits.RELUCTANT_LEASES * limits.LEASE_MS
    if not await worker.lease.keep(lane.store, lane.clock, reluctant_ms, losing):
        return limits.LEASE_BEAT_MS, None
    marks = await read_marks(lane)
    # What was seen is dated after it was seen (R5), by a clock that is good at that very moment.
    now = lane.clock.now()
    trusted = trusted and lane.trusts_clock(now)
    busy = await close_expired(lane, marks, now, trusted)
    busy = await make_final(lane, marks, worker.repair, now) or busy
    busy = await finish_low(lane, marks, worker.repair, now, trusted) or busy
    busy = await keep_index(lane, marks, worker.index, now, trusted) or busy
    busy = await retire(lane, marks, now, trusted) or busy
    return (limits.STEP_SOON_MS if busy else limits.STEP_MS), marks
