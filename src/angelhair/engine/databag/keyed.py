"""De-duplication by key (R10): puts with one key within the databag's window are one message.

A key's row goes `pending(id)` → `committed(id)`, as in other queues. Whoever finds it pending puts the message at that
same id before it answers. An id is an answer only when the key's row was committed with it.

    key pending ──▶ place held ──▶ epoch looked at ──▶ body written ──▶ epoch looked at ──▶ key committed

The body comes last: a place that is held is nobody's to serve, and it keeps its epoch from being finished. So where an
epoch was finished before the place was held for sure, nothing has been served from there, and nothing will be: the
place is voided, by a delete, and the key moves on to another. Were the message to be seen first, as those without keys
are, it might have been served by somebody who had not heard of its epoch's end, and come again.

A purge may finish an epoch in which a place is held. Who finds a body there then knows that it was put before that, and
answers so. When a key's window is over the next put takes its row; what was pending in it is voided after that, so that
whoever had begun it, and slept, puts nothing beside the message that it is told of. A place that nobody comes back to
keeps its epoch until the key's row would be gone (`Bag.is_given_up`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from angelhair import limits
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.epochs import Epochs, Place, block_of, place_of
from angelhair.engine.databag.lane import LANE, Bag
from angelhair.engine.databag.put import PutOutcome, Sent, confirmed, spread, take_serials, values_of
from angelhair.engine.keys import COMMITTED, PENDING, key_partition
from angelhair.engine.schema import is_whole
from angelhair.engine.settling import change_settled, read_surely, write_through
from angelhair.engine.store import Applied, Change, ChangeOutcome, Refused, Row, RowChange, Span, Value, Values, Write
from angelhair.errors import OutcomeUnknown, StoreError
from angelhair.model import MessageId, NewMessage

Look = Callable[[Bag, Sequence[int]], Awaitable[list[Epochs]]]
"""At the epochs of blocks."""

MESSAGE = ("body", "attributes", "enqueued_at", "origin")
"""What is written of one, once its place is sure."""

LAPSED = "the key lapsed while its message was being put"
GONE = "the key was first put too long ago: nobody can tell what became of it"


@dataclass(slots=True)
class _Try:
    """One message on its way."""

    message: NewMessage
    key: str
    asked_at: int
    number: int = 0
    """The id that the key names, or will."""
    token: str = ""
    """What the key's row has in it, by whoever wrote it."""
    begun_at: int = 0
    """When that was: the date of the message, whoever writes it."""
    expect: Values | None = None
    """What the key's row must be like for our id to go into it; None when it names one already."""
    abandoned: int | None = None
    """An id that was pending in a row whose window is over."""
    place: Place = (0, 0)
    resumed: bool = False
    """Somebody else has begun it, and may have written a body."""
    answer: PutOutcome | None = None


async def put_keyed(bag: Bag, messages: Sequence[NewMessage], sent: Sent) -> list[PutOutcome]:
    """For each the id under which the message with its key is, or an error. Equal keys get equal answers. Raises
    `QueueGone`."""
    now_ms = await bag.time_ms()
    tries: dict[str, _Try] = {}
    for message in messages:
        assert message.key is not None
        tries.setdefault(message.key, _Try(message, message.key, now_ms, expect={"status": None}))
    for attempt in range(limits.PUT_ROUNDS):
        if not (going := [one for one in tries.values() if one.answer is None]):
            break
        # What was remembered has led to an epoch that is over: of other blocks it may be as old.
        await _name(bag, going, sent, epochs_of.load if attempt else epochs_of.known)
        if going := [one for one in going if one.answer is None and one.expect is None]:
            await _complete(bag, going)
    late = OutcomeUnknown("the key's message met finished epochs, or others who put it, all the time")
    return [tries[str(message.key)].answer or late for message in messages]


# --- the key's row ------------------------------------------------------------------------------------------------


async def _name(bag: Bag, tries: Sequence[_Try], sent: Sent, look: Look) -> None:
    """Takes ids for them and writes these into their keys' rows, or finds the ids that are there."""
    try:
        serials = await take_serials(bag, len(tries))
        now_ms = await bag.time_ms()
        drafts = spread(bag, range(len(tries)))
        found = await look(bag, [draft.block for draft in drafts])
    except StoreError as error:
        for one in tries:
            one.answer = OutcomeUnknown(str(error)) if sent.some else error
        return
    for draft, epochs in zip(drafts, found, strict=True):
        for index, slice_ in zip(draft.indices, draft.slices, strict=True):
            one = tries[index]
            one.number = ids.make(slice_, epochs.open, serials[index], bag.secret)
            one.token, one.begun_at, one.resumed = bag.identities.fresh(), now_ms, False
    sent.some = True
    changes = [_change(bag, one, one.expect or {}, PENDING) for one in tries]
    for one, outcome in zip(tries, await change_settled(bag.store, changes), strict=True):
        _take_in(one, outcome)
    await _abandon(bag, [one.abandoned for one in tries if one.expect is None and one.abandoned is not None])


async def _abandon(bag: Bag, numbers: Sequence[int]) -> None:
    """Voids what was begun under a key that is another's by now: it cannot be committed any more. If this fails its
    place keeps an epoch for longer, and at worst the message comes, of which nobody was told."""
    if not numbers:
        return
    with suppress(StoreError):
        now_ms = await bag.time_ms()
        found = await epochs_of.load_for(bag, numbers)
        places = [place_of(number, found[block_of(number)]) for number in numbers]
        await bag.store.write([
            Write(bag.messages(*place), [Row(number, {"deleted": now_ms})])
            for number, place in zip(numbers, places, strict=True) if place is not None
        ])


def _take_in(one: _Try, outcome: ChangeOutcome) -> None:
    if isinstance(outcome, Applied):
        one.expect = None
        return
    if isinstance(outcome, StoreError):
        # The key may stand as pending: a later put with it would then complete this one.
        one.answer = outcome if one.expect == {"status": None} else OutcomeUnknown(str(outcome))
        return
    row = outcome.rows.get(one.key, {})
    status, number, token = row.get("status"), row.get("id"), row.get("attempt")
    if status is None or not isinstance(number, int):
        one.expect = {"status": None}
        return
    expires_at, begun_at = row.get("expires_at"), row.get("enqueued_at")
    if token != one.token and isinstance(expires_at, int) and expires_at <= one.asked_at:
        # Its window is over: it counts as absent.
        one.expect = {"status": status, "id": number, "attempt": token}
        one.abandoned = number if status == PENDING else None
        return
    if token != one.token:
        one.abandoned = None
    one.expect = None
    one.resumed = one.resumed or token != one.token
    one.number, one.token = number, str(token)
    one.begun_at = begun_at if isinstance(begun_at, int) else one.begun_at
    if status == COMMITTED:
        one.answer = MessageId(LANE, number)


def _change(bag: Bag, one: _Try, expect: Values, status: str) -> Change:
    window_ms = bag.settings.dedup_window_ms
    ttl_seconds = -(-window_ms // 1_000)
    if status == PENDING:
        # As long as whoever began it may sleep: its row must not be another's when it wakes.
        ttl_seconds = max(ttl_seconds, limits.LEDGER_SECONDS)
    values: dict[str, Value] = {
        "status": status, "lane": LANE, "id": one.number, "attempt": one.token,
        "expires_at": one.begun_at + window_ms, "enqueued_at": one.begun_at,
    }
    row = RowChange(one.key, expect, values)
    ttl_seconds = min(ttl_seconds, limits.TTL_MAXIMUM_SECONDS)
    return Change(key_partition(bag.incarnation, one.key), [row], ttl_seconds=ttl_seconds)


def _pending(one: _Try) -> Values:
    return {"status": PENDING, "id": one.number, "attempt": one.token}


async def _commit(bag: Bag, tries: Sequence[_Try]) -> None:
    """What somebody has moved on meanwhile goes another round."""
    changes = [_change(bag, one, _pending(one), COMMITTED) for one in tries]
    for one, outcome in zip(tries, await change_settled(bag.store, changes), strict=True):
        if isinstance(outcome, Applied):
            one.answer = MessageId(LANE, one.number)
        elif isinstance(outcome, Refused):
            row = outcome.rows.get(one.key, {})
            if row.get("status") is None:
                one.answer = OutcomeUnknown(LAPSED)
            elif row.get("status") == COMMITTED and row.get("id") == one.number:
                one.answer = MessageId(LANE, one.number)
            else:
                one.expect = _pending(one)
        else:
            one.answer = OutcomeUnknown("the key's row could not be committed")


# --- its message --------------------------------------------------------------------------------------------------


async def _complete(bag: Bag, tries: Sequence[_Try]) -> None:
    """Puts each at the id that its key names, and commits that; or moves its key on."""
    unfit: list[_Try] = []
    going = await _placed(bag, tries, unfit)
    going = await _write(bag, going, lambda one: {"held_at": one.begun_at})
    going = await _sure(bag, going, unfit)
    for place, some in _by_place(going).items():
        await epochs_of.count(bag, *place, epochs_of.weight(one.message.body for one in some))
    there = await _bodies(bag, [one for one in going if one.resumed])
    # What is there may be on one replica only: who confirms has written it, the same again.
    await _write(bag, [one for one in going if one.answer is None], lambda one: there.get(one.number) or _whole(one))
    await _commit(bag, await _sure(bag, [one for one in going if one.answer is None], unfit))
    await _move_on(bag, unfit)


def _whole(one: _Try) -> Values:
    """All columns, so that of two who write there at once one has written the message; and with the date of who writes:
    it is kept for as long as was promised from then on."""
    return {"attributes": "", "origin": "", **values_of(one.message, one.asked_at)}


async def _placed(bag: Bag, tries: Sequence[_Try], unfit: list[_Try]) -> list[_Try]:
    """Those that lie in epochs which are not finished."""
    try:
        found = await epochs_of.load_for(bag, [one.number for one in tries], surely=True)
    except StoreError as error:
        return _unknown(tries, error)
    fit: list[_Try] = []
    for one in tries:
        epochs = found[block_of(one.number)]
        place = place_of(one.number, epochs)
        if place is None:
            one.answer = OutcomeUnknown(GONE)
            continue
        one.place = place
        (fit if place[1] in epochs.read else unfit).append(one)
    return fit


def _by_place(tries: Sequence[_Try]) -> dict[Place, list[_Try]]:
    by_place: dict[Place, list[_Try]] = {}
    for one in tries:
        by_place.setdefault(one.place, []).append(one)
    return by_place


async def _write(bag: Bag, tries: Sequence[_Try], values: Callable[[_Try], Values]) -> list[_Try]:
    """Those whose row is written."""
    groups = _by_place(tries)
    writes = [
        Write(bag.messages(*place), [Row(one.number, values(one)) for one in some]) for place, some in groups.items()
    ]
    if not writes:
        return []
    done: list[_Try] = []
    try:
        outcomes = await write_through(bag.store, writes)
    except StoreError as error:
        return _unknown(tries, error)
    for some, outcome in zip(groups.values(), outcomes, strict=True):
        done += some if outcome is None else _unknown(some, outcome)
    return done


async def _sure(bag: Bag, tries: Sequence[_Try], unfit: list[_Try]) -> list[_Try]:
    """Those whose epoch is not going to be finished without regard to what was just written there."""
    groups = _by_place(tries)
    sure: list[_Try] = []
    for some, verdict in zip(groups.values(), await confirmed(bag, list(groups)), strict=True):
        if isinstance(verdict, StoreError):
            _unknown(some, verdict)
        elif verdict:
            sure += some
        else:
            unfit += some
    return sure


async def _bodies(bag: Bag, tries: Sequence[_Try]) -> dict[int, Values]:
    """By id, the message that is there. Where that cannot be read the answer is that nobody knows."""
    if not tries:
        return {}
    # Whole: of a part nobody knows whether the rest will ever be there.
    spans = [Span(bag.messages(*one.place), one.number, one.number, 1) for one in tries]
    try:
        found = await read_surely(bag.store, spans)
    except StoreError as error:
        _unknown(tries, error)
        return {}
    return {
        one.number: {name: value for name in MESSAGE if (value := slice_.rows[0].values.get(name)) is not None}
        for one, slice_ in zip(tries, found, strict=True)
        if slice_.rows and is_whole(slice_.rows[0].values)
    }


def _unknown(tries: Sequence[_Try], error: StoreError) -> list[_Try]:
    """Their keys stand: a later put with one completes it. None of them goes on."""
    for one in tries:
        one.answer = OutcomeUnknown(str(error))
    return []


async def _move_on(bag: Bag, unfit: Sequence[_Try]) -> None:
    """Ids in epochs that are finished. Where a body is, it was put before that; the others are voided, and their keys
    go to new ones."""
    if not unfit:
        return
    try:
        now_ms = await bag.time_ms()
        found = await epochs_of.load(bag, [one.place[0] for one in unfit], surely=True)
    except StoreError as error:
        _unknown(unfit, error)
        return
    for one, epochs in zip(unfit, found, strict=True):
        if now_ms >= one.begun_at + 1_000 * limits.LEDGER_SECONDS:
            # The place counted as given up, perhaps, when its epoch was finished.
            one.answer = OutcomeUnknown(LAPSED)
        elif not epochs.is_there(one.place[1]):
            one.answer = OutcomeUnknown(GONE)
    voided = await _write(bag, [one for one in unfit if one.answer is None], lambda _: {"deleted": now_ms})
    there = await _bodies(bag, voided)
    await _commit(bag, [one for one in voided if one.number in there])
    for one in voided:
        if one.answer is None and one.number not in there:
            one.expect = _pending(one)
