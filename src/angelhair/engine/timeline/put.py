"""Put: a row at its time, blindly; then one look at whether consumers have passed that time (R8, W3, W4).

A row's time is when it is due, and a little ahead of now at least: the producer delay, which keeps consumers from
passing rows that are being written. Nothing rests on it. After the write the shard's mark is read. Is it below the
row's time, every consumer that raises it so far will read after that, and find the row. Else consumers may have passed
the place, and the message is put again above the mark, with the due time that its producer gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from angelhair import limits
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import read_surely, write_through
from angelhair.engine.store import Row, Slice, Span, Value, Values, Write
from angelhair.engine.timeline import index
from angelhair.engine.timeline.lane import Line
from angelhair.engine.timeline.parts import key_of, number_of, time_of
from angelhair.errors import AngelhairError, InvalidRequest, OutcomeUnknown, StoreError, Unavailable
from angelhair.model import DAY_MS, DueId, MessageId, NewMessage

PutOutcome = MessageId | AngelhairError


@dataclass(slots=True, eq=False)
class Putting:
    """One message on its way."""

    message: NewMessage
    due_ms: int | None = None
    """None: as the message says, from the time of its put on."""
    enqueued_at_ms: int | None = None
    deliveries: int = 0
    floor_ms: int = 0
    """Its row lies above this."""
    lane: int = -1
    key: str = ""
    time_ms: int = 0
    sent: bool = False
    """A row of it may lie somewhere, and be given."""
    copies: list[tuple[int, str]] = field(default_factory=list)
    """Where it was written and not left: consumers may have passed it there, or not."""
    outcome: PutOutcome | None = None


async def put(line: Line, puttings: Sequence[Putting]) -> list[PutOutcome]:
    """An id for each message, or the error that it met. Raises `QueueGone` when the queue was deleted and none of them
    was put."""
    pending = list(puttings)
    lead_ms = max(line.settings.producer_delay_ms, limits.TIMELINE_LEAD_MS)
    try:
        for _ in range(limits.PUT_ROUNDS):
            if not pending:
                break
            sealed = await _one_round(line, pending, lead_ms)
            lead_ms *= 2
            pending = [putting for putting in pending if putting.outcome is None]
            if sealed and pending:
                line = await line.reload()
    except QueueGone:
        if not any(isinstance(putting.outcome, MessageId | OutcomeUnknown) for putting in puttings):
            # What was written lies in a queue that is gone: nobody will be given it.
            raise
        _fail(pending, Unavailable("the queue was deleted while it was being put to"))
    except StoreError as error:
        _fail(pending, error)
    _fail(pending, OutcomeUnknown("consumers passed every place that the message was written to"))
    await _void_copies(line, puttings)
    return [putting.outcome or Unavailable("it was not put") for putting in puttings]


async def _one_round(line: Line, pending: Sequence[Putting], lead_ms: int) -> bool:
    """Writes them and looks at the marks. True when a lane takes no more."""
    now_ms = await line.time_ms()
    by_part: dict[tuple[int, int], list[Putting]] = {}
    for putting in pending:
        _place(line, putting, now_ms)
        part = line.part_of(putting.time_ms)
        if _too_long(line, part, now_ms):
            putting.outcome = _too_far(line, putting, now_ms)
            continue
        by_part.setdefault((putting.lane, part), []).append(putting)
    if by_part:
        await _write(line, by_part, now_ms)
    written = [putting for group in by_part.values() for putting in group if putting.outcome is None]
    if not written:
        return False
    lanes = sorted({putting.lane for putting in written})
    spans = [Span(line.shard(lane)) for lane in lanes] + [Span(line.sequence(lane)) for lane in lanes]
    try:
        found = await read_surely(line.store, spans)
    except StoreError as error:
        _fail(written, OutcomeUnknown(str(error)))
        return False
    shards = dict(zip(lanes, found[: len(lanes)], strict=True))
    sequences = dict(zip(lanes, found[len(lanes) :], strict=True))
    sealed = _judge(written, shards, sequences, lead_ms)
    for lane in lanes:
        mark_ms = _row(shards[lane]).get("mark")
        line.view(lane).mark_ms = mark_ms if isinstance(mark_ms, int) else 0
    return sealed


def _place(line: Line, putting: Putting, now_ms: int) -> None:
    message = putting.message
    if putting.due_ms is None:
        putting.due_ms = message.due_ms if message.due_ms is not None else now_ms + _delay_ms(line, message)
    if putting.enqueued_at_ms is None:
        putting.enqueued_at_ms = now_ms
    putting.time_ms = max(putting.due_ms, now_ms + line.settings.producer_delay_ms, putting.floor_ms)
    putting.lane = _lane_at(line, putting.time_ms)
    ahead_ms = now_ms + limits.TIMELINE_LEAD_MS
    if putting.time_ms < ahead_ms and _is_read(line, putting.lane, now_ms):
        # Its mark would be above the row before the row is there: it would be put twice, and as often be given twice.
        putting.time_ms = ahead_ms
        putting.lane = _lane_at(line, ahead_ms)
    line.sessions.count(putting.time_ms // 1_000)
    putting.key = key_of(putting.time_ms, line.identities.fresh())


def _lane_at(line: Line, time_ms: int) -> int:
    second = time_ms // 1_000
    turn = second + line.sessions.counted(second) // limits.TIMELINE_SECOND_MESSAGES
    return line.open[turn % len(line.open)]


def _is_read(line: Line, lane: int, now_ms: int) -> bool:
    """Whether somebody raises the mark of a shard every now and then, as far as this server knows: the last time lies
    no more than a few pauses back. A guess, for speed."""
    view = line.view(lane)
    mark_ms = max(view.mark_ms, 0 if view.held is None else view.held.seen_mark_ms)
    return now_ms - mark_ms < 4 * limits.TIMELINE_RAISE_MS


def _delay_ms(line: Line, message: NewMessage) -> int:
    return line.settings.delay_ms if message.delay_ms is None else message.delay_ms


def _too_long(line: Line, part: int, now_ms: int) -> bool:
    until_ms = until(line, part)
    if until_ms is None:
        return False
    return until_ms - now_ms > index.longest_ms(line) or until_ms > index.latest_ms(line)


def _too_far(line: Line, putting: Putting, now_ms: int) -> InvalidRequest:
    """By the name of what was given, with the one bound that is nearer, and with what has none."""
    expire_ms, longest_ms, latest_ms = line.settings.expire_after_ms or 0, index.longest_ms(line), index.latest_ms(line)
    bound = "beyond January 2038" if latest_ms < now_ms + longest_ms else "for more than 20 years"
    days = max(0, min(now_ms + longest_ms, latest_ms) - expire_ms - line.settings.part_ms - now_ms) // DAY_MS
    return InvalidRequest(
        "delay" if putting.message.due_ms is None else "due",
        f"can be {days} days from now at most: a row is kept for {expire_ms // DAY_MS} days after it is due here, and "
        f"none that expires can be kept {bound}; in a timeline that is made with an expire_after of null rows do not "
        "expire, and it has no such bound",
    )


def until(line: Line, part: int) -> int | None:
    """When the messages of a part expire, if they are written now; None: they do not."""
    expire_ms = line.settings.expire_after_ms
    return None if expire_ms is None else line.end_of(part) + expire_ms


async def _write(line: Line, by_part: dict[tuple[int, int], list[Putting]], now_ms: int) -> None:
    """Index and rows in one call. Each counts for itself: without its row in the index nobody may find a message."""
    entries: dict[tuple[int, str], index.Needed] = {}
    wanted: dict[tuple[int, int], list[tuple[int, str]]] = {}
    writes: list[Write] = []
    for (lane, part), group in by_part.items():
        until_ms = until(line, part)
        rows = index.needed(line, lane, part, until_ms, now_ms)
        entries.update(((lane, row.name), row) for row in rows)
        wanted[lane, part] = [(lane, row.name) for row in rows]
        rows_of_it = [Row(item.key, _values(item, now_ms)) for item in group]
        # Dated by a wrong clock, a row may keep the life that it is given now, whoever renews it: it gets none (R5).
        lives = ttl_seconds(until_ms, now_ms) if line.trusts_clock(line.clock.now()) else None
        writes.append(Write(line.dues(lane, part), rows_of_it, lives))
    outcomes = await write_through(line.store, [*(row.write for row in entries.values()), *writes])
    failed = {}
    for (name, row), outcome in zip(entries.items(), outcomes, strict=False):
        if outcome is None:
            line.view(name[0]).remember(row.group, row.bit)
        else:
            failed[name] = outcome
    for (place, group), outcome in zip(by_part.items(), outcomes[len(entries) :], strict=True):
        missing = [failed[name] for name in wanted[place] if name in failed]
        for putting in group:
            if outcome is not None:
                putting.outcome = _said(putting, outcome)
                putting.sent = putting.sent or isinstance(outcome, OutcomeUnknown)
            elif missing:
                putting.outcome, putting.sent = OutcomeUnknown(str(missing[0])), True
            else:
                putting.sent = True


def _values(putting: Putting, now_ms: int) -> Values:
    """Only what is there: on Cassandra every None written would be a tombstone that readers have to step over. With
    `renewed`, by which whoever renews it later sees whose write counts."""
    message = putting.message
    values: dict[str, Value] = {
        "body": message.body,
        "enqueued_at": putting.enqueued_at_ms,
        "due": putting.due_ms,
        "renewed": now_ms,
    }
    if message.attributes is not None:
        values["attributes"] = message.attributes
    if message.origin is not None:
        values["origin"] = message.origin
    if putting.deliveries:
        values["deliveries"] = putting.deliveries
    return values


def _judge(
    written: Sequence[Putting], shards: dict[int, Slice], sequences: dict[int, Slice], lead_ms: int
) -> bool:
    sealed = False
    for putting in written:
        shard, sequence = _row(shards[putting.lane]), _row(sequences[putting.lane])
        mark_ms = shard.get("mark")
        if not isinstance(mark_ms, int) or shard.get("deleted") or not sequence or sequence.get("deleted"):
            raise QueueGone("the timeline, or this shard of it, is gone")
        if not sequence.get("sealed") and putting.time_ms > mark_ms:
            putting.outcome = DueId(putting.lane, number_of(putting.key))
            continue
        putting.copies.append((putting.lane, putting.key))
        if sequence.get("sealed"):
            sealed = True
        else:
            putting.floor_ms = mark_ms + lead_ms
    return sealed


async def _void_copies(line: Line, puttings: Sequence[Putting]) -> None:
    """Of messages that are confirmed elsewhere, so that whoever comes to a copy need not give it. If it does, or has
    done so already, a message comes twice: no more than that depends on it."""
    copies = [(item, place) for item in puttings if isinstance(item.outcome, MessageId) for place in item.copies]
    if not copies:
        return
    now_ms = line.clock.now().wall_ms
    writes = []
    for putting, (lane, key) in copies:
        part = line.part_of(time_of(key))
        # Whole, and for as long as the row itself.
        row = Row(key, {**_values(putting, now_ms), "body": b"", "void": 1})
        writes.append(Write(line.dues(lane, part), [row], ttl_seconds(until(line, part), now_ms)))
    with suppress(StoreError):
        await line.store.write(writes)


def ttl_seconds(until_ms: int | None, now_ms: int) -> int | None:
    return None if until_ms is None else max(1, -((now_ms - until_ms) // 1_000))


def _row(found: Slice) -> Values:
    return found.rows[0].values if found.rows else {}


def _said(putting: Putting, error: StoreError) -> StoreError:
    """Once a row of it may lie somewhere, nobody can say that it did not happen."""
    return OutcomeUnknown(str(error)) if putting.sent and isinstance(error, Unavailable) else error


def _fail(pending: Sequence[Putting], error: StoreError) -> None:
    for putting in pending:
        if putting.outcome is None:
            putting.outcome = _said(putting, error)
