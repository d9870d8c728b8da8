"""De-duplication by key (R10): puts with one key within the queue's window are one message.

A key's row goes `pending(id)` → `committed(id)`. Whoever finds it pending writes the message at that same id before
it answers, so it does not matter who died in between. Keys lie in partitions by their hash, never by time.

An id is an answer only when the key's row was committed with it. A committed row lapses when the window is over. One
that is pending is there for much longer than any put may sleep: it says what its id has gone on from, and as long as
that is not void nobody may forget it. When its window is over, the next put with the key voids that and takes the row.

A message that is to wait in the delay line has an id that is made of its row's token, whose end says so: whoever
completes it writes it there too, and no bucket gets it as well.

Many at a time, in rounds: all keys in one call of the store, then all bodies of a lane in one, then all commits. Most
are done in the first round; those that met somebody else's pending key, or a finished bucket, go another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.bucketed import put, wake
from angelhair.engine.bucketed.first import first_id
from angelhair.engine.bucketed.given import given, void, voided
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.keys import COMMITTED, PENDING, key_partition
from angelhair.engine.settling import change_settled
from angelhair.engine.standing import as_they_stand
from angelhair.engine.store import Applied, Change, ChangeOutcome, Refused, RowChange, Value, Values
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError
from angelhair.model import MessageId

ELSEWHERE = "~"
"""The end of a token: the message at the row's id waits in the delay line."""


class Keyed(NamedTuple):
    """A message with a key, and the id that was reserved in case it is the first with that key."""

    lane: Lane
    placed: put.Placed
    key: str
    put_elsewhere: put.PutElsewhere
    asked_at: int
    """From when on its key counts."""
    token: str | None = None
    """What every try to put this message has in its key's row, if there may be several that do not know each other."""
    waits_elsewhere: bool = False
    """In the delay line, if it is the first with its key."""


class Answer(NamedTuple):
    outcome: put.PutOutcome
    ours: bool
    """The message with that key is this one; else another put was before it."""


@dataclass(slots=True)
class _Try:
    """One message on its way."""

    item: Keyed
    lane: Lane
    placed: put.Placed
    """Under the id that the key names, or will."""
    expect: dict[str, Value]
    """What the key's row must be like for our id to go into it."""
    before: MessageId | None
    """What the key has gone on from: void, or else that is the message."""
    told_until: int
    """Until when the bucket of the id that the row names, or of `before`, can tell what was given out."""
    taken_over: MessageId | None = None
    """What a row that is over has gone on from."""
    set_aside: Values | None = None
    """A row that is over, and that a run will look for."""
    repeated: bool = False
    """The row was sent more than once: a copy may come when all is over."""
    token: str = ""
    resuming: bool = False
    """Somebody else's put with this key may have been delivered, whatever becomes of ours."""
    answer: put.PutOutcome | None = None
    ours: bool = True
    before_is_ours: bool = True

    @property
    def number(self) -> int:
        return self.placed.number

    @property
    def elsewhere(self) -> bool:
        return self.token.endswith(ELSEWHERE)

    @property
    def id(self) -> MessageId:
        if self.elsewhere:
            return first_id(self.lane.number, self.token)
        return MessageId(self.lane.number, self.number)


class Reserved(Protocol):
    """Ids that were taken in a lane which is open now."""

    @property
    def lane(self) -> Lane: ...
    @property
    def first(self) -> int: ...


Reserve = Callable[[int], Awaitable[Reserved]]

async def put_keyed(
    items: Sequence[Keyed], lane_of: Callable[[int], Lane], attempt: str, now: Moment, reserve_again: Reserve
) -> list[Answer]:
    """For each the id under which the message with its key is, or an error. Equal keys get equal answers."""
    tries = await _put_all(items, lane_of, attempt, now, reserve_again)
    unfit = OutcomeUnknown("the key's message kept meeting finished buckets")
    return [Answer(one.answer or unfit, one.ours) for one in (tries[item.key] for item in items)]


async def _put_all(
    items: Sequence[Keyed], lane_of: Callable[[int], Lane], attempt: str, now: Moment, reserve_again: Reserve
) -> dict[str, _Try]:
    tries: dict[str, _Try] = {}
    for item in items:
        lapses_at = max(item.placed.lapses_at, item.asked_at + item.lane.settings.dedup_window_ms)
        placed = item.placed._replace(lapses_at=lapses_at)
        tries.setdefault(item.key, _Try(item, item.lane, placed, {"status": None}, None, lapses_at))
    for round_number in range(limits.PUT_ROUNDS):
        open_tries = [one for one in tries.values() if one.answer is None]
        if not open_tries:
            break
        await _one_round(open_tries, lane_of, f"{attempt}.{round_number}", round_number > 0, now, reserve_again)
    return tries


async def _one_round(
    tries: Sequence[_Try], lane_of: Callable[[int], Lane], attempt: str, again: bool, now: Moment,
    reserve_again: Reserve,
) -> None:
    store = tries[0].lane.store
    for number, one in enumerate(tries):
        one.token = one.item.token or f"{attempt}.{number}{_end_of_token(one)}"
    unsure: set[int] = set()
    outcomes = await change_settled(store, [_change(one, one.expect, PENDING, one.id) for one in tries], unsure)
    for index in unsure:
        tries[index].repeated = True
    ready = [one for one, outcome in zip(tries, outcomes, strict=True) if _owns(one, outcome, lane_of, again)]
    # Before their rows are taken: nobody would know any more that these are to be void.
    await void_all([one.taken_over for one in tries if one.taken_over is not None], lane_of, now)
    for one in tries:
        one.taken_over = None
    await _gone_on([one for one in ready if one.before is not None], lane_of, now)
    open_ones = [one for one in ready if one.answer is None]
    here = [one for one in open_ones if not one.elsewhere]
    unfit = await _void_among([one for one in here if again or one.resuming or one.repeated or one.item.token])
    left_out = {one.item.key for one in unfit}
    unfit += await _standing([one for one in here if one.resuming and one.item.key not in left_out])
    left_out.update(one.item.key for one in unfit)
    for group in _by_lane([one for one in open_ones if one.item.key not in left_out]):
        written = await _written(group, now)
        for one in group:
            if not one.elsewhere:
                one.answer = written.get(one.number)
            if one.answer is None:
                unfit.append(one)
            elif isinstance(one.answer, AngelhairError) and (again or one.resuming):
                # An id that was given up may have been delivered all the same, by whoever slept.
                one.answer = OutcomeUnknown(str(one.answer))
    for group in _by_lane(unfit):
        given_out = await given(group[0].lane, [one.number for one in group])
        for one in group:
            if one.number in given_out:
                # Before its key was committed; since then its bucket was finished, or the queue purged.
                one.answer = one.id
    await _commit([one for one in ready if isinstance(one.answer, MessageId)])
    await _move_on([one for one in unfit if one.answer is None], reserve_again)


async def _written(tries: Sequence[_Try], now: Moment) -> dict[int, put.PutOutcome]:
    """Of one lane, by id: those that are not in it can no longer be put where they are."""
    lane, outcomes = tries[0].lane, dict[int, put.PutOutcome]()
    if here := [one.placed for one in tries if not one.elsewhere]:
        outcomes.update((await put.write(lane, here, now)).outcomes)
    late = [put.Late(one.token, one.placed.message, one.placed.enqueued_at) for one in tries if one.elsewhere]
    if late:
        found = await tries[0].item.put_elsewhere(lane, late)
        for one, outcome in zip([one for one in tries if one.elsewhere], found, strict=True):
            one.answer = outcome
    return outcomes


def _end_of_token(one: _Try) -> str:
    """What has gone on from a bucket stays in buckets."""
    return ELSEWHERE if one.item.waits_elsewhere and one.before is None else ""


def _by_lane(tries: Sequence[_Try]) -> list[list[_Try]]:
    by_lane: dict[int, list[_Try]] = {}
    for one in tries:
        by_lane.setdefault(one.lane.number, []).append(one)
    return list(by_lane.values())


async def void_all(ids: Sequence[MessageId], lane_of: Callable[[int], Lane], now: Moment) -> set[MessageId]:
    """Those for which it is too late."""
    late: set[MessageId] = set()
    for lane in sorted({each.lane for each in ids}):
        numbers = [each.number for each in ids if each.lane == lane]
        late.update(MessageId(lane, number) for number in await void(lane_of(lane), numbers, now))
    return late


async def _gone_on(tries: Sequence[_Try], lane_of: Callable[[int], Lane], now: Moment) -> None:
    """Sees to it that what their keys have gone on from is void. Where it is not, or nobody can tell, that is the
    answer."""
    if not tries:
        return
    given_out = await void_all([one.before for one in tries if one.before is not None], lane_of, now)
    now_ms = await wake.index_time_ms(tries[0].lane)
    for one in tries:
        if one.before in given_out:
            # Before its key went on.
            one.answer, one.ours = one.before, one.before_is_ours
        elif now_ms >= one.told_until:
            # Its bucket may be gone, and with it what was given out.
            one.answer = OutcomeUnknown("the key was first put too long ago: nobody can tell what became of it")


async def _void_among(tries: Sequence[_Try]) -> list[_Try]:
    """Those whose id an earlier row of the key has gone on from. That row has lapsed since, or else it would stand."""
    unfit: list[_Try] = []
    for group in _by_lane(tries):
        void_ones = await voided(group[0].lane, [one.number for one in group])
        unfit += [one for one in group if one.number in void_ones]
    return unfit


async def _standing(tries: Sequence[_Try]) -> list[_Try]:
    """Each as others have written it; which of them can no longer be put where they are."""
    unfit: list[_Try] = []
    for group in _by_lane(tries):
        asked_at = max(one.item.asked_at for one in group)
        stands = await as_they_stand(group[0].lane, [one.placed for one in group], asked_at)
        for one in group:
            if (placed := stands[one.number]) is None:
                unfit.append(one)
            else:
                one.placed = placed
    return unfit


def _owns(one: _Try, outcome: ChangeOutcome, lane_of: Callable[[int], Lane], again: bool) -> bool:
    """Whether the message is to be written now; otherwise it has its answer, or goes another round."""
    if isinstance(outcome, Applied):
        return True
    if isinstance(outcome, StoreError):
        # The key may stand as pending: a later put with the same key would then complete this one.
        one.answer = OutcomeUnknown(str(outcome)) if again else outcome
        return False
    found = outcome.rows.get(one.item.key, {})
    status, lane, number, expires_at = (found.get(name) for name in ("status", "lane", "id", "expires_at"))
    if not isinstance(lane, int) or not isinstance(number, int):
        one.expect, one.before, one.set_aside = {"status": None}, None, None
        return False
    before = found.get("before")
    gone_on_from = MessageId.parse(before) if isinstance(before, str) else None
    own = MessageId(one.item.lane.number, one.item.placed.number)
    is_own = own == MessageId(lane, number) or found.get("attempt") == one.item.token
    if one.item.waits_elsewhere:
        # It has no number: what this call has written tells.
        is_own = str(found.get("attempt")).partition(".")[0] == one.token.partition(".")[0]
    is_over = isinstance(expires_at, int) and expires_at <= one.item.asked_at
    if is_over and not is_own and own != gone_on_from:
        # Its window is over: it counts as absent. What is our own is ours, however old it is.
        one.before, one.taken_over = None, gone_on_from if status == PENDING else None
        one.expect = {"status": status, "lane": lane, "id": number, "attempt": found.get("attempt")}
        kept_until = found.get("kept_until")
        one.set_aside = dict(found) if isinstance(kept_until, int) and kept_until > one.item.asked_at else None
        return False
    one.ours = one.before_is_ours = is_own
    if status == COMMITTED:
        one.answer = named_in(found)
        return False
    one.resuming = True
    one.lane, one.token = lane_of(lane), str(found.get("attempt"))
    one.before = gone_on_from
    if isinstance(expires_at, int):
        # Our own id has its bucket for as long as we asked for.
        one.told_until = max(expires_at, one.item.placed.lapses_at) if is_own or gone_on_from == own else expires_at
    begun_at, kept_until = found.get("enqueued_at"), found.get("kept_until")
    lapses = [moment for moment in (one.placed.lapses_at, expires_at, kept_until) if isinstance(moment, int)]
    date = begun_at if isinstance(begun_at, int) else one.placed.enqueued_at
    if one.item.token is not None:
        # Whoever tries it, it is due at the same time.
        due_at = one.placed.enqueued_at + (one.placed.message.delay_ms or 0)
        one.placed = one.placed._replace(message=one.placed.message._replace(delay_ms=max(0, due_at - date)))
    one.placed = one.placed._replace(number=number, lapses_at=max(lapses), enqueued_at=date)
    return True


async def _commit(tries: Sequence[_Try]) -> None:
    """A key that stays pending is completed by the next put with it, at the same id. Until it is committed somebody may
    move it on, and the id would be an answer for nothing. One that names another id by now, because whoever found it
    pending moved it on while we slept, goes another round."""
    for _ in range(limits.SETTLE_ATTEMPTS):
        tries = [one for one in tries if isinstance(one.answer, MessageId)]
        if not tries:
            return
        # The very row that we know of.
        changes = [
            _change(one, {**_pending(one), "attempt": one.token}, COMMITTED, one.answer)
            for one in tries
            if isinstance(one.answer, MessageId)
        ]
        outcomes = await change_settled(tries[0].lane.store, changes)
        for one, outcome in zip(tries, outcomes, strict=True):
            if isinstance(outcome, Refused) and isinstance(one.answer, MessageId):
                row = outcome.rows.get(one.item.key, {})
                if row.get("status") is None:
                    one.answer = OutcomeUnknown("the key lapsed while its message was being put")
                elif row.get("status") != COMMITTED or named_in(row) != one.answer:
                    one.answer = None
        for one in tries:
            if one.repeated and isinstance(one.answer, MessageId):
                # What was committed may be a late copy of a row that others have gone on from, and that lapsed since.
                if await wake.index_time_ms(one.lane) >= one.item.asked_at + one.item.lane.settings.dedup_window_ms:
                    one.answer = OutcomeUnknown("the key lapsed while its message was being put")
        tries = [one for one, outcome in zip(tries, outcomes, strict=True) if isinstance(outcome, StoreError)]
    for one in tries:
        one.answer = OutcomeUnknown("the key's row could not be committed")


async def _move_on(tries: Sequence[_Try], reserve_again: Reserve) -> None:
    """Ids that were never delivered and no longer can be: their keys move on to new ones, with the date of now."""
    if not tries:
        return
    for one in tries:
        one.expect, one.before = {**_pending(one), "attempt": one.token}, one.id
        one.before_is_ours, one.ours = one.ours, True
    fresh = await reserve_again(len(tries))
    now_ms = await wake.index_time_ms(fresh.lane)
    for offset, one in enumerate(tries):
        one.lane = fresh.lane
        one.placed = put.dated(one.placed, now_ms, fresh.lane.settings)._replace(number=fresh.first + offset)


def _pending(one: _Try) -> dict[str, Value]:
    return {"status": PENDING, "lane": one.lane.number, "id": one.number}


def _change(one: _Try, expect: Values, status: str, named: MessageId) -> Change:
    item = one.item
    window_ms = item.lane.settings.dedup_window_ms
    expires_at = item.asked_at + window_ms
    # Those of a run as long as the run can be tried; others see that their window is over.
    ttl_seconds = max(-(-window_ms // 1000), -(-(one.placed.lapses_at - item.asked_at) // 1000))
    if status == PENDING:
        ttl_seconds = max(ttl_seconds, limits.LEDGER_SECONDS)
        if one.before is not None:
            expires_at = min(expires_at, one.told_until)
    values: Values = {
        "status": status,
        "lane": named.lane,
        "id": one.number if one.elsewhere else named.number,
        "before": None if one.before is None else str(one.before),
        "attempt": one.token,
        "expires_at": expires_at,
        "enqueued_at": one.placed.enqueued_at,
        "kept_until": one.placed.lapses_at,
    }
    rows = [RowChange(item.key, expect, values)]
    if status == PENDING and one.set_aside is not None:
        rows.append(RowChange(str(one.set_aside["attempt"]), {}, one.set_aside))
    return Change(
        key_partition(item.lane.incarnation, item.key),
        rows,
        ttl_seconds=min(ttl_seconds, limits.TTL_MAXIMUM_SECONDS),
    )


def named_in(row: Values) -> MessageId:
    lane, number = row.get("lane"), row.get("id")
    assert isinstance(lane, int) and isinstance(number, int)
    token = str(row.get("attempt"))
    return first_id(lane, token) if token.endswith(ELSEWHERE) else MessageId(lane, number)
