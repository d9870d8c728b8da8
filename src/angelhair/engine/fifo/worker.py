"""One lane's background work, in steps: whoever holds its lease finishes, retires and turns epochs over (A11)."""

from __future__ import annotations

from dataclasses import dataclass, field

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.fifo.epoch import drop_old, look, turn_over, worn
from angelhair.engine.fifo.finish import FinishMemory, finish_low
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.read import read_on
from angelhair.engine.fifo.retire import retire
from angelhair.engine.leases import Lease


@dataclass(slots=True)
class Worker:
    lease: Lease
    finish: FinishMemory = field(default_factory=FinishMemory)

    @classmethod
    def of(cls, lane: Lane) -> Worker:
        return cls(Lease(places.leases(lane.incarnation, lane.number), "repair", lane.server))


async def step(lane: Lane, worker: Worker, trusted: bool, losing: frozenset[str]) -> int:
    """One step of the lane's work if this server is elected. Returns when to come back, in ms."""
    reluctant_ms = None if trusted else limits.RELUCTANT_LEASES * limits.LEASE_MS
    if not await worker.lease.keep(lane.store, lane.clock, reluctant_ms, losing):
        return limits.LEASE_BEAT_MS
    marks = await read_on(lane)
    busy = await finish_low(lane, marks, worker.finish)
    trusted = trusted and lane.trusts_clock(lane.clock.now())
    busy = await retire(lane, marks, trusted) or busy
    read_ms = lane.view.read_ms
    if read_ms is None or lane.clock.now().monotonic_ms - read_ms >= limits.EPOCH_LOOK_MS:
        # A server that always finds enough to deliver never sees what others have delivered.
        await look(lane)
    if worn(lane):
        await turn_over(lane, marks.epoch)
        busy = True
    busy = await drop_old(lane, marks.epoch, marks.epoch_dropped) or busy
    return limits.STEP_SOON_MS if busy else limits.STEP_MS
