"""Which messages of a fifo queue move, and where to: dead letters, redrive, moves that stand still (R7)."""

from __future__ import annotations

from collections.abc import Callable

from angelhair import limits
from angelhair.engine.catalog import Queue
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.moves import FindLane, Source, Target, go_on, move
from angelhair.engine.fifo.peek import visible
from angelhair.engine.fifo.put import lane_of
from angelhair.engine.fifo.read import bodies_of
from angelhair.engine.fifo.state import DEAD, MOVED, MOVING
from angelhair.engine.marks import QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.settling import begun
from angelhair.errors import InvalidRequest, QueueNotFound
from angelhair.model import FIFO

ORIGIN_PARTS = 3
"""Account, queue and id, as a move to the dead letters writes them."""

MakeLane = Callable[[Queue, int], Lane]


async def move_exhausted(memory: Memory, lane: Lane, make: MakeLane) -> None:
    """Messages that used up their deliveries go to the dead-letter queue; moves that stand still go on."""
    view = lane.view
    if view.exhausted:
        picks = list(view.exhausted.items())[: limits.MOVES]
        view.exhausted.clear()
        target = await _fifo_queue(memory, lane, lane.settings.dead_letter_queue)
        now = lane.clock.now()
        view.dead_letters_missed_ms = now.monotonic_ms if target is None else None
        if target is not None:
            await _move(memory, lane, picks, target, DEAD, make)
    now = lane.clock.now()
    stalled: list[Source] = [
        (group, entry.number)
        for group, state in view.states.items()
        for entry in state.touched.values()
        if entry.settled == MOVING and view.watch(group, entry, now) >= limits.MOVE_PATIENCE_MS
    ]
    if stalled:
        await go_on(lane, stalled[: limits.MOVES], _find(memory, make))


async def redrive(memory: Memory, queue: Queue, destination: str | None, most: int, make: MakeLane) -> int:
    """Moves visible messages of all lanes, each group in order; how many went."""
    arrived = 0
    for number in queue.read_lanes:
        lane = make(queue, number)
        staying: set[str] = set()
        while arrived < most:
            with begun(arrived > 0):
                picks = await visible(lane, min(most - arrived, limits.MOVES), staying)
                wanted = await _by_destination(lane, picks) if destination is None else {destination: picks}
                went = 0
                for name, group in wanted.items():
                    target = await _fifo_queue(memory, lane, name)
                    if target is not None:
                        went += await _move(memory, lane, group, target, MOVED, make)
                    elif destination is not None:
                        raise InvalidRequest("kind", f"there is no fifo queue {name!r}, and messages keep their order")
            arrived += went
            if not picks:
                break
            if not went:
                # What cannot go back holds nothing back but its own group.
                staying.update(group for group, _ in picks)
    return arrived


async def _by_destination(lane: Lane, picks: list[Source]) -> dict[str, list[Source]]:
    rows = await bodies_of(lane, [number for _, number in picks])
    wanted: dict[str, list[Source]] = {}
    held: set[str] = set()
    for group, number in picks:
        origin = rows.get(number, {}).get("origin")
        parts = origin.split("/") if isinstance(origin, str) else []
        if len(parts) == ORIGIN_PARTS and group not in held:
            wanted.setdefault(parts[1], []).append((group, number))
        else:
            # It stays, and with it all that is behind it in its group.
            held.add(group)
    return wanted


async def _move(
    memory: Memory, lane: Lane, picks: list[Source], target: Queue, label: str, make: MakeLane
) -> int:
    by_lane: dict[int, list[Source]] = {}
    for pick in picks:
        by_lane.setdefault(lane_of(pick[0], target.settings.lanes), []).append(pick)
    arrived = 0
    for number, group in by_lane.items():
        try:
            arrived += await move(lane, group, make(target, number), label, _find(memory, make))
        except QueueGone:
            # The target was made again: what is marked goes on later, or comes back.
            memory.distrust(target.account, target.name)
    return arrived


async def _fifo_queue(memory: Memory, lane: Lane, name: str | None) -> Queue | None:
    """A queue that messages may be moved to; another kind would forget their order."""
    if name is None:
        return None
    try:
        queue = await memory.find_queue(lane.account, name, memory.clock.now())
    except (QueueNotFound, InvalidRequest):
        return None
    return queue if queue.settings.kind == FIFO else None


def _find(memory: Memory, make: MakeLane) -> FindLane:
    async def find(target: Target) -> Lane | None:
        for _ in range(2):
            try:
                queue = await memory.find_queue(target.account, target.queue, memory.clock.now())
            except QueueNotFound:
                return None
            if queue.incarnation == target.incarnation:
                return make(queue, target.lane)
            # Ours may be the older: the row knows of a queue that was made again since.
            memory.distrust(target.account, target.queue)
        return None

    return find
