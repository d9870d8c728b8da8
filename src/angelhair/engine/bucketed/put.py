"""Put: reserve ids, write bodies blindly, read the marks, confirm (A4, R1).

    reserve      one conditional write takes as many ids as there are messages; it also fails if the queue is gone
    write        the bodies go into the buckets of their ids, with wake entries for the delayed ones
    confirm      one read of the lane's marks: a bucket at or above `final` will be read by repair after this;
                 one below must admit the message now; one that is finished or dropped takes it no more,
                 and the message goes again under a new id

The two halves are separate verbs so that the next reservation runs while these rows are being written. A store that can
do all three in one step does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.admit import Arrival, admit
from angelhair.engine.bucketed.dropped import drop_again
from angelhair.engine.bucketed.erase import overwrite_erased
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.marks import LaneSealed, QueueGone, pointer_marks
from angelhair.engine.schema import BODY_DATES
from angelhair.engine.settling import change_one, read_surely, write_through
from angelhair.engine.store import (
    Applied,
    Change,
    JoiningStore,
    Refused,
    Row,
    RowChange,
    RowsInARow,
    Slice,
    Span,
    Together,
    Value,
    Write,
)
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError, Unavailable
from angelhair.model import MessageId, NewMessage, QueueSettings

PutOutcome = MessageId | AngelhairError


class Placed(NamedTuple):
    """A message with the id that was reserved for it."""

    number: int
    message: NewMessage
    enqueued_at: int
    lapses_at: int = 0
    """When the message's key lapses, or that of its run, if it has one."""


class Late(NamedTuple):
    """A message that is to wait in the delay line, and the token that its id is made of."""

    token: str
    message: NewMessage
    enqueued_at: int


PutElsewhere = Callable[[Lane, Sequence[Late]], Awaitable[list[PutOutcome]]]
"""Puts messages into the delay line, with ids of this lane; what became of each."""


Count = Callable[[], int]
"""For how many messages ids are wanted. Asked anew at each try: more may have come while another server was faster."""


async def reserve(lane: Lane, count: int, attempt: str) -> int:
    """Takes `count` ids; returns the first. Raises `QueueGone` or `LaneSealed` when the memory of the lane is old."""
    return await reserve_all(lane, lambda: count, attempt)


async def reserve_all(lane: Lane, count: Count, attempt: str) -> int:
    """As `reserve`, as many as `count` said last."""
    next_id = await _next_id(lane)
    for _ in range(limits.RESERVE_ROUNDS):
        wanted = count()
        outcome = await change_one(lane.store, _reservation(lane, next_id, wanted, attempt))
        if isinstance(outcome, StoreError):
            lane.view.next_id = None
            # Ids that nobody writes are void: the put itself provably did not happen.
            raise Unavailable(str(outcome))
        if _reserved(lane, outcome, next_id, wanted, attempt):
            return next_id
        assert lane.view.next_id is not None
        next_id = lane.view.next_id
    raise Unavailable("too many servers reserve ids in this lane at once")


async def _next_id(lane: Lane) -> int:
    """As it is remembered, or else as it is."""
    if lane.view.next_id is not None:
        return lane.view.next_id
    (found,) = await lane.store.read([Span(lane.sequence)])
    return _next_of(lane, found.rows[0].values if found.rows else {})


async def check_sequence(lane: Lane) -> None:
    """That the queue is the one that is remembered. Raises `QueueGone` or `LaneSealed`."""
    (found,) = await read_surely(lane.store, [Span(lane.sequence)])
    _next_of(lane, found.rows[0].values if found.rows else {})


def _reservation(lane: Lane, first: int, count: int, attempt: str) -> Change:
    expect = {"next": first, "deleted": None, "sealed": None}
    return Change(
        lane.sequence, [RowChange(places.SEQUENCE_ROW, expect, {"next": first + count, "attempt": attempt})]
    )


def _reserved(lane: Lane, outcome: Applied | Refused, first: int, count: int, attempt: str) -> bool:
    """Whether the ids are ours. Where the lane stands now is remembered either way."""
    if _is_ours(outcome, first, count, attempt):
        lane.view.next_id = first + count
        return True
    assert isinstance(outcome, Refused)
    lane.view.next_id = _next_of(lane, outcome.rows.get(places.SEQUENCE_ROW, {}))
    lane.view.reservations_lost += 1
    return False


def _is_ours(outcome: Applied | Refused, first: int, count: int, attempt: str) -> bool:
    if isinstance(outcome, Applied):
        return True
    row = outcome.rows.get(places.SEQUENCE_ROW, {})
    return row.get("attempt") == attempt and row.get("next") == first + count


def _next_of(lane: Lane, row: object) -> int:
    values = row if isinstance(row, dict) else {}
    next_id = values.get("next")
    if not isinstance(next_id, int) or values.get("deleted"):
        raise QueueGone(lane.queue)
    if values.get("sealed"):
        raise LaneSealed(lane.queue)
    return next_id


def place(first: int, messages: Sequence[NewMessage], enqueued_at: int) -> list[Placed]:
    return [Placed(first + index, message, enqueued_at) for index, message in enumerate(messages)]


def _by_bucket(lane: Lane, placed: Sequence[Placed]) -> dict[int, list[Placed]]:
    by_bucket: dict[int, list[Placed]] = {}
    for item in placed:
        by_bucket.setdefault(lane.bucket_of(item.number), []).append(item)
    return by_bucket


class Written(NamedTuple):
    """What became of placed messages."""

    outcomes: dict[int, PutOutcome]
    again: list[Placed]
    """They met a finished bucket and must go under a new id."""


async def write(lane: Lane, placed: Sequence[Placed], now: Moment) -> Written:
    """Writes reserved messages and sees to it that they will be delivered; an outcome for each."""
    outcomes: dict[int, PutOutcome] = {}
    by_bucket = _by_bucket(lane, placed)
    buckets = list(by_bucket)
    writes = [Write(lane.bodies(bucket), [_row(lane, item) for item in by_bucket[bucket]]) for bucket in buckets]
    settings = lane.settings
    delays = {(delay, lane.bucket_of(item.number)) for item in placed if (delay := delay_of(settings, item.message))}
    slots: list[tuple[int, int]] = []
    if delays:
        try:
            begin_ms = await wake.index_time_ms(lane)
        except Unavailable as timeless:
            # Said of these alone: others of their group may have been written already.
            return Written({item.number: timeless for item in placed}, [])
        slots = sorted({(places.wake_slot(begin_ms + delay), bucket) for delay, bucket in delays})
        writes += wake.entries(lane, ((slot, bucket, limits.LOOK_AGAIN_MS) for slot, bucket in slots))
    results = await write_through(lane.store, writes)
    index_error = next((result for result in results[len(buckets) :] if result is not None), None)
    arrived: dict[int, list[Placed]] = {}
    for bucket, result in zip(buckets, results, strict=False):
        error = result
        delayed = any(delay_of(settings, item.message) for item in by_bucket[bucket])
        if error is None and index_error is not None and delayed:
            error = OutcomeUnknown(str(index_error))
        if error is None:
            arrived[bucket] = by_bucket[bucket]
        else:
            outcomes.update((item.number, error) for item in by_bucket[bucket])
    again = await _confirm(lane, arrived, slots, outcomes, now)
    return Written(outcomes, again)


async def write_plain(lane: Lane, first: int, bodies: Sequence[bytes], enqueued_at: int, lapses_at: int) -> bool:
    """Reserved messages of a run that are nothing but their bodies, in columns: for many at a time. True when all will
    be delivered; else `write` has to look at them one by one. Raises when it is not known."""
    same: dict[str, Value] = {"enqueued_at": enqueued_at, "keyed": lapses_at}
    size, end = lane.settings.bucket_size, first + len(bodies)
    writes = []
    for bucket in range(lane.bucket_of(first), lane.bucket_of(end - 1) + 1):
        begin, stop = max(first, bucket * size), min(end, (bucket + 1) * size)
        rows = RowsInARow(begin, "body", bodies[begin - first : stop - first], same)
        writes.append(Write(lane.bodies(bucket), rows))
    for error in await write_through(lane.store, writes):
        if error is not None:
            raise error
    (pointers,) = await read_surely(lane.store, [Span(lane.pointers)])
    try:
        marks = pointer_marks(pointers)
    except QueueGone:
        return False
    return first >= max(marks.purged, marks.erased) and lane.bucket_of(first) >= marks.final


async def write_together(
    lane: Lane, store: JoiningStore, messages: Sequence[NewMessage], attempt: str, enqueued_at: int, now: Moment
) -> Written | int | None:
    """Reserve, write and the read before the confirmation in one step, for messages without delay and key.

    None when nothing was done, because what was remembered of the lane is old. A number when it is the first id that
    was reserved in the end, and the messages are still to be written, perhaps again.
    """
    first = await _next_id(lane)
    placed = place(first, messages, enqueued_at)
    by_bucket = _by_bucket(lane, placed)
    writes = [Write(lane.bodies(bucket), [_row(lane, item) for item in items]) for bucket, items in by_bucket.items()]
    change = _reservation(lane, first, len(messages), attempt)
    outcome, slices = await store.together(Together(change, writes, [Span(lane.pointers)]))
    if isinstance(outcome, OutcomeUnknown):
        # The same reservation again decides it, if the ids are still ours. The rows may or may not be there.
        lane.view.next_id = None
        try:
            again = await change_one(store, change)
        except StoreError:
            raise outcome from None
        if isinstance(again, StoreError) or not _is_ours(again, first, len(messages), attempt):
            raise outcome
        return first
    if isinstance(outcome, StoreError):
        lane.view.next_id = None
        raise outcome
    if not _reserved(lane, outcome, first, len(messages), attempt):
        return None
    outcomes: dict[int, PutOutcome] = {}
    return Written(outcomes, await _confirm(lane, by_bucket, [], outcomes, now, slices[0]))


async def _confirm(
    lane: Lane,
    arrived: dict[int, list[Placed]],
    slots: list[tuple[int, int]],
    outcomes: dict[int, PutOutcome],
    now: Moment,
    pointers: Slice | None = None,
) -> list[Placed]:
    if not arrived:
        return []
    again: list[Placed] = []
    try:
        if pointers is None:
            (pointers,) = await read_surely(lane.store, [Span(lane.pointers)])
        marks = pointer_marks(pointers)
        lane.view.note_passed(marks, lane.settings.bucket_size)
        # Entries that the wake marks had passed already are written again, above them.
        await wake.arm(lane, [(0, bucket) for slot, bucket in slots if slot <= marks.wake_raised])
        if doubtful := [item.number for items in arrived.values() for item in items if item.number < marks.erased]:
            await overwrite_erased(lane, doubtful)
        now_ms = None if lane.settings.retention_ms is None else await wake.index_time_ms(lane)
    except QueueGone:
        # The lane was read to its end and dropped while this put slept: what it wrote there, nobody will read.
        return [item for items in arrived.values() for item in items]
    except StoreError as error:
        for items in arrived.values():
            outcomes.update((item.number, OutcomeUnknown(str(error))) for item in items)
        return []
    for bucket, arrivals in arrived.items():
        if bucket < marks.floor:
            await drop_again(lane, [bucket])
            again.extend(arrivals)
            continue
        items = [item for item in arrivals if item.number >= marks.purged and not is_late(lane, item, now_ms)]
        if len(items) < len(arrivals):
            kept = {item.number for item in items}
            again.extend(item for item in arrivals if item.number not in kept)
        if not items:
            continue
        if bucket >= marks.final:
            outcomes.update((item.number, MessageId(lane.number, item.number)) for item in items)
        else:
            again.extend(await _admit_own(lane, bucket, items, outcomes, now))
    return again


async def _admit_own(
    lane: Lane, bucket: int, items: list[Placed], outcomes: dict[int, PutOutcome], now: Moment
) -> list[Placed]:
    arrivals = [Arrival(item.number, item.enqueued_at, delay_of(lane.settings, item.message)) for item in items]
    try:
        left_out = await admit(lane, bucket, arrivals, now)
        # `final` may have been set again after the drop, by a worker that slept: the floor tells.
        (pointers,) = await read_surely(lane.store, [Span(lane.pointers)])
        if bucket < pointer_marks(pointers).floor:
            await drop_again(lane, [bucket])
            return items
    except QueueGone:
        return items
    except StoreError as error:
        outcomes.update((item.number, OutcomeUnknown(str(error))) for item in items)
        return []
    again = [item for item in items if item.number in left_out]
    outcomes.update((item.number, MessageId(lane.number, item.number)) for item in items if item.number not in left_out)
    return again


def is_late(lane: Lane, item: Placed, now_ms: int | None) -> bool:
    """Whether what was written has outlived the queue's retention by now: its writer slept, and nobody would get it."""
    kept_ms = lane.settings.retention_ms
    if kept_ms is None or now_ms is None or item.enqueued_at + kept_ms > now_ms:
        return False
    return item.enqueued_at + delay_of(lane.settings, item.message) + kept_ms <= now_ms


async def unwritten_and_old(lane: Lane, numbers: Sequence[int], enqueued_at: int, now_ms: int) -> set[int]:
    """Of ids that somebody reserved long ago: those at which nothing has been written yet, if half of the retention is
    over. What is written there now would be gone soon: it had better have another id, and the date of now."""
    if not numbers or not is_old(lane, enqueued_at, now_ms):
        return set()
    return {*numbers} - await written_among(lane, numbers)


def is_old(lane: Lane, enqueued_at: int, now_ms: int) -> bool:
    """Whether half of the retention is over."""
    kept_ms = lane.settings.retention_ms
    return kept_ms is not None and enqueued_at + kept_ms // 2 <= now_ms


async def written_among(lane: Lane, numbers: Iterable[int]) -> set[int]:
    """Those of the ids at which somebody has written a message."""
    by_bucket = lane.by_bucket(numbers)
    spans = [
        Span(lane.bodies(bucket), min(inside), max(inside), None, BODY_DATES)
        for bucket, inside in by_bucket.items()
    ]
    found = await read_surely(lane.store, spans)
    return {
        int(row.key)
        for inside, part in zip(by_bucket.values(), found, strict=True)
        for row in part.rows
        if row.key in inside
    }


def dated(item: Placed, now_ms: int, settings: QueueSettings) -> Placed:
    """With the date of now; due when it was due, or at once if that has passed."""
    left_ms = max(0, item.enqueued_at + delay_of(settings, item.message) - now_ms)
    return item._replace(enqueued_at=now_ms, message=item.message._replace(delay_ms=left_ms))


def _row(lane: Lane, item: Placed) -> Row:
    """Only what is there: on Cassandra every None written would be a tombstone that readers have to step over."""
    message = item.message
    values: dict[str, Value] = {"body": message.body, "enqueued_at": item.enqueued_at}
    if delay := delay_of(lane.settings, message):
        values["visible_from"] = item.enqueued_at + delay
    if message.attributes is not None:
        values["attributes"] = message.attributes
    if message.origin is not None:
        values["origin"] = message.origin
    if message.key is not None:
        # Two puts with one key may write this row: whole, so that the columns of one never stand beside the other's.
        values = {"visible_from": None, "attributes": None, "origin": None, **values, "keyed": item.lapses_at}
    elif item.lapses_at:
        # Of a run: whoever writes this row writes the same.
        values["keyed"] = item.lapses_at
    return Row(item.number, values)


def is_plain(settings: QueueSettings, message: NewMessage) -> bool:
    """Neither delayed nor with a key: there is nothing to be done for it but to write it."""
    return message.key is None and not delay_of(settings, message)


def delay_of(settings: QueueSettings, message: NewMessage) -> int:
    return settings.delay_ms if message.delay_ms is None else message.delay_ms
