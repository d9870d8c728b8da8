"""Messages of timelines that used up their deliveries go to the dead-letter queue, whatever its kind can take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from angelhair import limits
from angelhair.engine.bucketed import put as putting
from angelhair.engine.bucketed.put import PutOutcome
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.puts import Reservation, put_reserved
from angelhair.engine.stats import lane_stats
from angelhair.engine.timeline.aside import id_of, message_of, set_aside
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.peek import stats
from angelhair.engine.timeline.put import Putting, put
from angelhair.engine.timeline.window import Entry, Held
from angelhair.errors import InvalidRequest, QueueNotFound, StoreError
from angelhair.model import BUCKETED, TIMELINE, MessageId, NewMessage

MakeLine = Callable[[Queue], Line]
Item = tuple[Held, Entry]


async def move_exhausted(memory: Memory, line: Line, make: MakeLine) -> None:
    """Puts them there, confirmed, before the checkpoint may pass them; if there is no such queue they come again later,
    and are given once more (A1)."""
    now = line.clock.now()
    items: list[Item] = []
    for held in line.all_held():
        if held.believed(now):
            room = limits.MOVES - len(items)
            items += [(held, entry) for entry in held.exhausted[:room] if not entry.settled]
            held.exhausted = held.exhausted[room:]
    if not items:
        return
    try:
        await _move(memory, line, items, make)
    finally:
        # Nobody else has them in hand: what did not go is tried again.
        for held, entry in items:
            if not entry.settled:
                held.exhausted.append(entry)


async def _move(memory: Memory, line: Line, items: Sequence[Item], make: MakeLine) -> None:
    target, now_ms = await _dead_letters(memory, line), await line.time_ms()
    # What was acked while we asked says nothing any more.
    items = [(held, entry) for held, entry in items if not entry.settled]
    if target is None:
        at_ms = now_ms + line.settings.visibility_timeout_ms
        await set_aside(line, [(held, entry, at_ms, entry.delivery - 1) for held, entry in items])
    elif items:
        messages = [_message(line, held, entry) for held, entry in items]
        try:
            outcomes = await _put(memory, target, messages, make)
        except (StoreError, QueueGone, LaneSealed):
            memory.distrust(target.account, target.name)
            outcomes = []
        for (held, entry), outcome in zip(items, outcomes, strict=False):
            if isinstance(outcome, MessageId):
                line.sessions.dead_count += 1
                if not entry.settled:
                    held.settle(entry, None)


async def _dead_letters(memory: Memory, line: Line) -> Queue | None:
    try:
        queue = await memory.find_queue(line.account, line.settings.dead_letter_queue or "", memory.clock.now())
    except (QueueNotFound, InvalidRequest):
        return None
    # The others want a group, or count nothing and have no redrive: what was put there would not find its way back.
    return queue if queue.settings.kind in (BUCKETED, TIMELINE) else None


async def count_dead(memory: Memory, line: Line, make: MakeLine, most_buckets: int) -> Stats:
    """As `dead`, what the dead-letter queue of a timeline holds: in the timeline itself nothing is left of it."""
    queue = await _dead_letters(memory, line) if line.settings.dead_letter_queue is not None else None
    there = Stats()
    if queue is not None and queue.settings.kind == TIMELINE:
        there = await stats(make(queue), limits.TIMELINE_COUNTED)
    elif queue is not None:
        for number in queue.read_lanes:
            now = memory.clock.now()
            most = max(2, most_buckets // len(queue.lanes))
            there.add(await lane_stats(memory.lane(queue, number), now, memory.clock_is_good(now), most))
    return Stats(dead=there.visible + there.in_flight + there.delayed, exact=there.exact)


def _message(line: Line, held: Held, entry: Entry) -> NewMessage:
    """Under a key that is the same whoever moves it, so that it is there once."""
    message = message_of(entry.values)
    origin = message.origin or f"{line.account}/{line.name}/{id_of(held, entry)}"
    return message._replace(origin=origin, key=f"{line.incarnation}/{id_of(held, entry)}", delay_ms=0)


async def _put(memory: Memory, target: Queue, messages: list[NewMessage], make: MakeLine) -> list[PutOutcome]:
    if target.settings.kind == TIMELINE:
        return await put(make(target), [Putting(message._replace(key=None)) for message in messages])

    async def reserve(count: int) -> Reservation:
        lane = memory.lane_for_put(target, memory.clock.now())
        return Reservation(target, lane, await putting.reserve(lane, count, memory.identities.fresh()))

    return await put_reserved(memory, await reserve(len(messages)), messages, reserve)
