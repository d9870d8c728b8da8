"""Runs: many messages that are put once, however often it is tried (R10). Spark's tasks write by it.

It is what `dedup` does for one message, with one row of the ledger for all of a run: before any message is written the
row says `pending` and which ids they have; when all of them are in the queue it says `committed`. Whoever finds it
pending, hours later and on another machine, writes the same messages at the same ids, except those that were given out
meanwhile. What met a finished bucket, and was in it for nobody, goes on to new ids, and the row says so first. Messages
with keys are put by those: their rows say what an earlier try has done.

    begin     ids, and the row; or the row as an earlier try left it
    finish    the messages, at those ids; then the row is committed

Both halves may be repeated, by several at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.bucketed import put, wake
from angelhair.engine.bucketed.given import given, void
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.catalog import Queue
from angelhair.engine.keys import COMMITTED, PENDING
from angelhair.engine.memory import Memory
from angelhair.engine.puts import Reservation, ReserveAgain
from angelhair.engine.runs import Bodies, doubles_in, key_of, put_keyed
from angelhair.engine.settling import change_one, read_surely
from angelhair.engine.store import Applied, Change, Partition, Refused, RowChange, Span, Values
from angelhair.errors import (
    AngelhairError,
    InvalidRequest,
    OutcomeUnknown,
    QueueNotFound,
    StoreError,
    StoreRefused,
    Unavailable,
)
from angelhair.model import NewMessage

Accept = Callable[[set[int]], None]
"""Told which messages have a key that another message has, before the run is said to be in the queue. If it raises, the
run stays as it is, and is told so again the next time."""


def accept_all(_: set[int]) -> None:
    """Messages whose keys are known are left out."""


class Run(NamedTuple):
    """What is to be put once. Every try says the same."""

    writer: str
    """Whose run it is, such as one task's share of one batch of one query."""
    block: int
    """Which of the writer's runs."""
    messages: int
    digest: str
    """Of the messages: a try with others is refused, as nobody could say which of them are in the queue."""
    window_ms: int
    """For how long after the first try it can be told what was given out, and so for how long it can be tried again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The ledger's row."""

    status: str
    lane: int
    id: int
    messages: int
    digest: str
    attempt: str
    begun_at: int
    lapses_at: int
    first_at: int | None = None
    """When it was first begun. Delays count from then, whatever date the messages have got since."""
    rest: str | None = None
    """Which of the messages are at `id` and behind it, when it is not all of them."""
    before: str | None = None
    """Lane, id and rest as they were: what has gone on from there is voided before it is written here."""

    @property
    def values(self) -> Values:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def offsets(self) -> Sequence[int]:
        return range(self.messages) if self.rest is None else _offsets(self.rest)

    @property
    def place(self) -> str:
        return f"{self.lane}/{self.id}/{self.rest or ''}"

    @property
    def gone_on_from(self) -> tuple[int, dict[int, int]] | None:
        """The lane, and by id which of the messages had it."""
        if self.before is None:
            return None
        lane, first, rest = self.before.split("/")
        offsets = _offsets(rest) if rest else range(self.messages)
        left = set(self.offsets)
        return int(lane), {int(first) + index: offset for index, offset in enumerate(offsets) if offset in left}


class Begun(NamedTuple):
    queue: Queue
    run: Run
    entry: Entry
    resuming: bool
    """Others may have written some of it."""

    @property
    def enqueued_at(self) -> int:
        """From when on delays count."""
        return self.entry.first_at or self.entry.begun_at


async def begin(memory: Memory, queue: Queue, run: Run) -> Begun | None:
    """None when the run is in the queue already. Raises `QueueGone` or `LaneSealed` when what is remembered is old."""
    (found,) = await read_surely(memory.store, [Span(_partition(queue, run), run.block, run.block)])
    if found.rows:
        # The queue may have been deleted and made again since we remembered it: its ledger is not the new one's (R6).
        await put.check_sequence(memory.lane(queue, queue.open_lanes[0]))
        return await _resumed(memory, queue, run, _entry(found.rows[0].values))
    lane, attempt = memory.lane_for_put(queue, memory.clock.now()), memory.identities.fresh()
    begun_at = await wake.index_time_ms(lane)
    first = await put.reserve(lane, run.messages, attempt)
    entry = Entry(
        PENDING, lane.number, first, run.messages, run.digest, attempt, begun_at, begun_at + run.window_ms, begun_at
    )
    stands = await _set(memory, queue, run, {"status": None}, entry)
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
            entry = await _set(memory, queue, run, _as_it_was(entry), replace(entry, status=COMMITTED))
            if entry.status == COMMITTED:
                await _in_time(memory, queue, run, entry)
                return set()
            resuming = True
    known = doubles = doubles_in(messages)
    keyed = [offset for offset in range(run.messages) if offset not in doubles and key_of(messages, offset) is not None]
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
            entry = await _set(memory, queue, run, _as_it_was(entry), replace(entry, status=COMMITTED))
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
    tokens = [f"{_name(run)}.{run.block}.{offset}" for offset in offsets]
    known = await put_keyed(memory, reserved, placed, tokens, reserve_again, resuming)
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
    if entry.lapses_at <= now_ms:
        # Their buckets may be gone, and with them what was given out.
        raise _lapsed(run, entry)
    fresh = await reserve_again(len(rest))
    if fresh.queue.incarnation != queue.incarnation:
        raise QueueNotFound(queue.account, queue.name)
    moved = replace(
        entry, lane=fresh.lane.number, id=fresh.first, attempt=memory.identities.fresh(), begun_at=now_ms,
        rest=_ranges(rest), before=entry.place,
    )
    return await _set(memory, queue, run, _as_it_was(entry), moved)


async def _resumed(memory: Memory, queue: Queue, run: Run, entry: Entry) -> Begun | None:
    if entry.messages != run.messages:
        raise InvalidRequest(
            "messages", f"of block {run.block} were {entry.messages} when {run.writer} first tried, and are "
            f"{run.messages} now: what is written again has to be cut into the same blocks"
        )
    if entry.digest != run.digest:
        raise InvalidRequest(
            "messages", f"of block {run.block} are others than when {run.writer} first tried: what is written again "
            "has to be the same, in the same order"
        )
    if entry.status == COMMITTED:
        return None
    if entry.lapses_at <= await wake.index_time_ms(memory.lane(queue, entry.lane)):
        raise _lapsed(run, entry)
    return Begun(queue, run, entry, resuming=True)


async def _in_time(memory: Memory, queue: Queue, run: Run, entry: Entry) -> None:
    """After its time nobody can tell what was given out; and long after it the row may be a late copy of the first."""
    if entry.lapses_at <= await wake.index_time_ms(memory.lane(queue, entry.lane)):
        raise _lapsed(run, entry)


def _lapsed(run: Run, entry: Entry) -> StoreRefused:
    return StoreRefused(
        f"block {run.block} of {run.writer} was begun too long ago: which of its {run.messages} messages, from "
        f"{entry.lane}-{entry.id} on, are in the queue cannot be told any more"
    )


async def _set(memory: Memory, queue: Queue, run: Run, expect: Values, entry: Entry) -> Entry:
    """The row as it stands afterwards: ours, or that of who was faster."""
    change = Change(
        _partition(queue, run), [RowChange(run.block, expect, entry.values)],
        ttl_seconds=max(limits.LEDGER_SECONDS, -(-run.window_ms // 1000)),
    )
    outcome = await change_one(memory.store, change)
    if isinstance(outcome, StoreError):
        raise outcome
    if isinstance(outcome, Applied):
        return entry
    assert isinstance(outcome, Refused)
    row = outcome.rows.get(run.block)
    if row is None or row.get("status") is None:
        raise OutcomeUnknown("the ledger's row has lapsed meanwhile")
    return _entry(row)


def _as_it_was(entry: Entry) -> Values:
    return {"status": PENDING, "attempt": entry.attempt}


def _entry(row: Values) -> Entry:
    return Entry(**{name: row.get(name) for name in Entry.__slots__})  # type: ignore[arg-type]


def _partition(queue: Queue, run: Run) -> Partition:
    return places.ledger(queue.incarnation, _name(run))


def _name(run: Run) -> str:
    return hashlib.blake2b(run.writer.encode(), digest_size=16).hexdigest()


def _ranges(offsets: Sequence[int]) -> str:
    """0-4,7 for 0, 1, 2, 3, 4 and 7."""
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def _offsets(ranges: str) -> list[int]:
    offsets: list[int] = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        offsets.extend(range(int(first), int(last or first) + 1))
    return offsets
