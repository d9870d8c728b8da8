"""Runs of a bucketed queue: many messages that are put once, however often it is tried (R10); see ledger.py.

The ledger's row says which ids they have. Whoever finds it pending, hours later and on another machine, writes the same
messages at the same ids, except those that were given out meanwhile. What met a finished bucket, and was in it for
nobody, goes on to new ids, and the row says so first. Messages with keys are put by those: their rows say what an
earlier try has done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple, overload

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import dedup, ledger
from angelhair.engine.bucketed import put, wake
from angelhair.engine.bucketed.given import given, void
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.catalog import Queue
from angelhair.engine.keys import COMMITTED, PENDING, key_partition
from angelhair.engine.ledger import Accept, Entry, Run
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.puts import Reservation, ReserveAgain
from angelhair.engine.settling import read_surely
from angelhair.engine.store import Span
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import NewMessage


class Begun(NamedTuple):
    """A run that is to be finished, of whatever kind of queue."""

    queue: Queue
    run: Run
    entry: Entry
    resuming: bool
    """Others may have written some of it."""

    @property
    def enqueued_at(self) -> int:
        """From when on delays count."""
        return self.entry.first_at or self.entry.begun_at


class Bodies(Sequence[NewMessage]):
    """Messages that are nothing but their bodies. One is made when somebody asks for it, which mostly nobody does."""

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self.bodies = bodies

    def __len__(self) -> int:
        return len(self.bodies)

    @overload
    def __getitem__(self, index: int) -> NewMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Bodies: ...
    def __getitem__(self, index: int | slice) -> NewMessage | Bodies:
        return Bodies(self.bodies[index]) if isinstance(index, slice) else NewMessage(self.bodies[index])


async def begin(memory: Memory, queue: Queue, run: Run) -> Begun | None:
    """None when the run is in the queue already. Raises `QueueGone` or `LaneSealed` when what is remembered is old."""
    found = await ledger.read(memory.store, queue.incarnation, run)
    if found is not None:
        # The queue may have been deleted and made again since we remembered it: its ledger is not the new one's (R6).
        await put.check_sequence(memory.lane(queue, queue.open_lanes[0]))
        return await _resumed(memory, queue, run, found)
    lane, attempt = memory.lane_for_put(queue, memory.clock.now()), memory.identities.fresh()
    begun_at = await wake.index_time_ms(lane)
    first = await put.reserve(lane, run.messages, attempt)
    entry = Entry(
        PENDING, lane.number, first, run.messages, run.digest, attempt, begun_at, begun_at + run.window_ms, begun_at
    )
    stands = await ledger.enter(memory.store, queue.incarnation, run, entry)
    if stands == entry:
        return Begun(queue, run, entry, resuming=False)
    return await _resumed(memory, queue, run, stands)


async def finish(
    memory: Memory, begun: Begun, messages: Sequence[NewMessage], reserve_again: ReserveAgain, accept: Accept
) -> set[int]:
    """Returns when all of it is in the queue: which of the messages, by their place in the run, have a key under which
    another message was there before. Raises `OutcomeUnknown` when it is not sure: try again."""
    try:
        return await _finish(memory, begun, messages, reserve_again, accept)
    except Unavailable as error:
        # Of one step; others may have happened.
        raise OutcomeUnknown(str(error)) from error


async def _finish(
    memory: Memory, begun: Begun, messages: Sequence[NewMessage], reserve_again: ReserveAgain, accept: Accept
) -> set[int]:
    queue, run, entry, resuming = begun
    if not resuming and isinstance(messages, Bodies) and not queue.settings.delay_ms:
        if await _written_plain(memory.lane(queue, entry.lane), entry, messages):
            accept(set())
            entry = await ledger.commit(memory.store, queue.incarnation, run, entry)
            if entry.status == COMMITTED:
                await _in_time(memory, queue, run, entry)
                return set()
            resuming = True
    known = doubles = _doubles_in(messages)
    plain = [offset for offset in range(run.messages) if offset not in doubles]
    keyed = [offset for offset in plain if _key_of(messages, offset) is not None]
    if keyed:
        known = known | await _put_keyed(memory, begun, messages, keyed, reserve_again)
    elsewhere = doubles.union(keyed)
    for _ in range(limits.PUT_ROUNDS):
        lane = memory.lane(queue, entry.lane)
        gone = await _given_before(memory, queue, run, entry, elsewhere)
        numbers = {
            entry.id + index: offset
            for index, offset in enumerate(entry.offsets)
            if offset not in elsewhere and offset not in gone
        }
        if resuming:
            for number in await given(lane, numbers):
                del numbers[number]
        left = await _written(memory, lane, entry, messages, numbers, resuming)
        if not left:
            accept(known)
            entry = await ledger.commit(memory.store, queue.incarnation, run, entry)
        else:
            entry = await _moved_on(
                memory, queue, run, entry, sorted(numbers[number] for number in left), reserve_again
            )
        if entry.status == COMMITTED:
            await _in_time(memory, queue, run, entry)
            return known
        # Moved on, by us or by who was faster: it says where to write now.
        resuming = True
    raise OutcomeUnknown("every bucket that the messages were written to had been finished")


async def _put_keyed(
    memory: Memory, begun: Begun, messages: Sequence[NewMessage], offsets: Sequence[int], reserve_again: ReserveAgain
) -> set[int]:
    """Which of them have a key that stands for another message. The ids that were reserved for them are for the try
    that reserved them: whoever goes on takes others, and finds by the keys what has been put."""
    queue, run, entry, resuming = begun
    await _in_time(memory, queue, run, entry)
    numbers: Sequence[int]
    if resuming:
        reserved = await reserve_again(len(offsets))
        if reserved.queue.incarnation != queue.incarnation:
            raise QueueNotFound(queue.account, queue.name)
        numbers = range(reserved.first, reserved.first + len(offsets))
    else:
        reserved = Reservation(queue, memory.lane(queue, entry.lane), entry.id)
        numbers = [entry.id + offset for offset in offsets]
    placed = [
        put.Placed(number, messages[offset], begun.enqueued_at, entry.lapses_at)
        for number, offset in zip(numbers, offsets, strict=True)
    ]
    tokens = [f"{ledger.name_of(run)}.{run.block}.{offset}" for offset in offsets]
    known = await _by_their_keys(memory, reserved, placed, tokens, reserve_again, resuming)
    return {offset for offset, is_known in zip(offsets, known, strict=True) if is_known}


async def _written_plain(lane: Lane, entry: Entry, messages: Bodies) -> bool:
    """The usual case, without a look at each message: nobody has begun it before, and each is nothing but its body.
    True when all will be delivered; else they are to be looked at."""
    if not await put.write_plain(lane, entry.id, messages.bodies, entry.begun_at, entry.lapses_at):
        return False
    kept_ms = lane.settings.retention_ms
    return kept_ms is None or entry.begun_at + kept_ms > await wake.index_time_ms(lane)


async def _written(
    memory: Memory, lane: Lane, entry: Entry, messages: Sequence[NewMessage], numbers: dict[int, int], resuming: bool
) -> set[int]:
    """Which of the ids can no longer be put to, and were given to nobody.

    A message has one date, that of its entry. If that is so old that nobody would receive it, it is not dated anew
    under its id: repair may have seen it expire, and a try that slept would bring the old date back.
    """
    if not numbers:
        return set()
    now_ms = await wake.index_time_ms(lane)
    left = _late(lane, entry, messages, numbers, now_ms)
    if resuming:
        left |= await put.unwritten_and_old(lane, list(numbers), entry.begun_at, now_ms)
    here = {number: offset for number, offset in numbers.items() if number not in left}
    if here:
        placed = [_placed(lane, entry, messages, number, offset) for number, offset in here.items()]
        written = await put.write(lane, placed, memory.clock.now())
        for outcome in written.outcomes.values():
            if isinstance(outcome, AngelhairError):
                raise OutcomeUnknown(str(outcome))
        left |= {item.number for item in written.again}
        left |= _late(lane, entry, messages, here, await wake.index_time_ms(lane))
    return left - await given(lane, left) if left else left


def _late(
    lane: Lane, entry: Entry, messages: Sequence[NewMessage], numbers: dict[int, int], now_ms: int
) -> set[int]:
    """Those that nobody would receive, with the entry's date."""
    kept_ms = lane.settings.retention_ms
    if kept_ms is None or entry.begun_at + kept_ms > now_ms:
        return set()
    return {
        number for number, offset in numbers.items()
        if put.is_late(lane, _placed(lane, entry, messages, number, offset), now_ms)
    }


def _placed(lane: Lane, entry: Entry, messages: Sequence[NewMessage], number: int, offset: int) -> put.Placed:
    """Whoever writes it writes the same: delays count from when the run was first begun."""
    item = put.Placed(number, messages[offset], entry.first_at or entry.begun_at, entry.lapses_at)
    if item.enqueued_at == entry.begun_at:
        return item
    return put.dated(item, entry.begun_at, lane.settings)


async def _given_before(
    memory: Memory, queue: Queue, run: Run, entry: Entry, elsewhere: Collection[int]
) -> set[int]:
    """Messages that somebody was given before the run went on from where they were; of the others nobody will be from
    now on."""
    found = entry.gone_on_from
    if found is None:
        return set()
    lane = memory.lane(queue, found[0])
    numbers = {number: offset for number, offset in found[1].items() if offset not in elsewhere}
    gone = await void(lane, numbers, memory.clock.now())
    # Their buckets may be gone, and with them what was given out.
    await _in_time(memory, queue, run, entry)
    return {numbers[number] for number in gone}


async def _moved_on(
    memory: Memory, queue: Queue, run: Run, entry: Entry, rest: Sequence[int], reserve_again: ReserveAgain
) -> Entry:
    """What is left goes to new ids, with a new date; the row says so before anything is written there."""
    now_ms = await wake.index_time_ms(memory.lane(queue, entry.lane))
    # Their buckets may be gone, and with them what was given out.
    ledger.in_time(run, entry, now_ms)
    fresh = await reserve_again(len(rest))
    if fresh.queue.incarnation != queue.incarnation:
        raise QueueNotFound(queue.account, queue.name)
    moved = replace(
        entry, lane=fresh.lane.number, id=fresh.first, attempt=memory.identities.fresh(), begun_at=now_ms,
        rest=ledger.ranges(rest), before=entry.place,
    )
    return await ledger.rewrite(memory.store, queue.incarnation, run, entry, moved)


async def _resumed(memory: Memory, queue: Queue, run: Run, entry: Entry) -> Begun | None:
    if ledger.resumed(run, entry) is None:
        return None
    await _in_time(memory, queue, run, entry)
    return Begun(queue, run, entry, resuming=True)


async def _in_time(memory: Memory, queue: Queue, run: Run, entry: Entry) -> None:
    ledger.in_time(run, entry, await wake.index_time_ms(memory.lane(queue, entry.lane)))


def _doubles_in(messages: Sequence[NewMessage]) -> set[int]:
    """Messages whose key one before them in the run has: whatever becomes of that one, they are left out."""
    if isinstance(messages, Bodies):
        return set()
    first: dict[str, int] = {}
    return {
        offset for offset, message in enumerate(messages)
        if message.key is not None and first.setdefault(message.key, offset) != offset
    }


def _key_of(messages: Sequence[NewMessage], offset: int) -> str | None:
    return None if isinstance(messages, Bodies) else messages[offset].key


async def _by_their_keys(
    memory: Memory, reserved: Reservation, placed: Sequence[put.Placed], tokens: Sequence[str],
    reserve_again: ReserveAgain, resuming: bool,
) -> list[bool]:
    """Messages of a run that have keys: each by its key, as any other put, and under ids that no earlier try has used.
    Which of them have a key that stands for another message. By its token a try knows what an earlier one has put."""
    lane, queue = reserved.lane, reserved.queue
    now_ms = await wake.index_time_ms(lane)
    items = [
        dedup.Keyed(
            lane, put.dated(item, now_ms, lane.settings), str(item.message.key), memory.put_elsewhere(queue), now_ms,
            token,
        )
        for item, token in zip(placed, tokens, strict=True)
    ]

    def lane_of(number: int) -> Lane:
        return memory.lane(queue, number)

    try:
        there = await _put_before(items, lane_of, memory.clock.now()) if resuming else set()
        left = [item for item in items if item.key not in there]
        answers = await dedup.put_keyed(left, lane_of, memory.identities.fresh(), memory.clock.now(), reserve_again)
    except (QueueGone, LaneSealed, QueueNotFound) as error:
        memory.distrust(queue.account, queue.name)
        raise OutcomeUnknown("the queue or its lanes changed while the messages were being put") from error
    for answer in answers:
        if isinstance(answer.outcome, AngelhairError):
            raise OutcomeUnknown(str(answer.outcome))
    known = {item.key for item, answer in zip(left, answers, strict=True) if not answer.ours}
    return [item.key in known for item in items]


async def _put_before(items: Sequence[dedup.Keyed], lane_of: Callable[[int], Lane], now: Moment) -> set[str]:
    """Keys whose message an earlier try with the same token has put, though the key stands for another by now: whoever
    took the row, when its window was over, set it aside under its token."""
    if not items:
        return set()
    spans = [Span(key_partition(item.lane.incarnation, item.key), item.token, item.token) for item in items]
    found = {
        item.key: part.rows[0].values
        for item, part in zip(items, await read_surely(items[0].lane.store, spans), strict=True)
        if part.rows
    }
    ids = {key: dedup.named_in(row) for key, row in found.items()}
    pending = [ids[key] for key, row in found.items() if row.get("status") == PENDING]
    late = await dedup.void_all(pending, lane_of, now)
    return {key for key, row in found.items() if row.get("status") == COMMITTED or ids[key] in late}
