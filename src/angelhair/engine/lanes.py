"""The background work of a queue, lane by lane, and the end of a lane: sealed, read to its end, kept for its history,
forgotten (R11)."""

from __future__ import annotations

from dataclasses import replace

from angelhair import limits
from angelhair.engine import catalog, places
from angelhair.engine.bucketed import worker as working
from angelhair.engine.catalog import Queue
from angelhair.engine.marks import Marks
from angelhair.engine.memory import Memory
from angelhair.engine.moves import move_exhausted
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, RowChange
from angelhair.errors import StoreError


async def step_lanes(memory: Memory, queue: Queue) -> int:
    """One step of each lane's work; in how many milliseconds to come back. A lane that cannot be read, because its
    replicas are down, stops no other; its error is raised when the others are done."""
    pause_ms, first_error = limits.STEP_MS, None
    losing, held = frozenset[str](), -1
    for number in list(queue.lanes):
        lane = memory.lane(queue, number)
        try:
            trusted = memory.clock_is_good(memory.clock.now())
            if trusted and held != memory.lanes_held(queue):
                # Whose clock is wrong takes no share; who has just taken one looks again who is richer.
                held, losing = memory.lanes_held(queue), await memory.losing_holders(queue)
            again_ms, marks = await working.step(lane, memory.worker(lane), trusted, losing)
            pause_ms = min(pause_ms, again_ms)
            await move_exhausted(memory, queue, lane, memory.clock.now())
            if lane.sealed and marks is not None:
                queue = await _end_lane(memory, queue, number, marks)
        except StoreError as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error
    return pause_ms


async def _end_lane(memory: Memory, queue: Queue, number: int, marks: Marks) -> Queue:
    """Takes a sealed lane one stage further if it is ready; returns the queue as it is then."""
    size = queue.settings.bucket_size
    if marks.dropped * size >= marks.next_id:
        lanes = {lane: status for lane, status in queue.lanes.items() if lane != number}
    elif marks.repair * size >= marks.next_id and queue.lanes[number] == catalog.SEALED:
        lanes = {**queue.lanes, number: catalog.KEPT}
    else:
        return queue
    if not await _seal_at(memory, queue, number, marks.next_id):
        return queue
    now = memory.clock.now()
    changed = await catalog.replace_queue(memory.store, queue, replace(queue, lanes=lanes), now)
    if changed is None:
        memory.distrust(queue.account, queue.name)
        return queue
    memory.remember(changed, now)
    if number not in lanes:
        periods = range(marks.wake_dropped, places.wake_period(marks.wake_raised) + 2)
        await memory.store.drop([places.wakes(queue.incarnation, number, period) for period in periods])
        await memory.store.drop([places.leases(queue.incarnation, number)])
    return changed


async def _seal_at(memory: Memory, queue: Queue, number: int, next_id: int) -> bool:
    """Seals the lane for good, provided that no id was taken beyond `next_id`.

    The catalog's word is not enough: whoever sealed the lane may have died in between, and a server that did not hear
    of it may have put something more.
    """
    row = RowChange(places.SEQUENCE_ROW, {"next": next_id, "deleted": None}, {"sealed": 1})
    change = Change(places.sequence(queue.incarnation, number), [row])
    return isinstance(await change_one(memory.store, change), Applied)
