"""De-duplication by key (R10): puts with one key within the queue's window are one message.

A key's row goes `pending(id)` → `committed(id)`. Whoever finds it pending writes the message at that same id before
it answers, so it does not matter who died in between. Keys lie in partitions by their hash, never by time.

Many at a time, in rounds: all keys in one call of the store, then all bodies of a lane in one, then all commits. Most
are done in the first round; those that met somebody else's pending key, or a finished bucket, go another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.bucketed import put
from angelhair.engine.bucketed.given import given
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.settling import change_settled, read_surely
from angelhair.engine.store import Applied, Change, ChangeOutcome, RowChange, Span, Value, Values
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError
from angelhair.model import MessageId, NewMessage

PENDING, COMMITTED = "pending", "committed"


class Keyed(NamedTuple):
    """A message with a key, and the id that was reserved in case it is the first with that key."""

    lane: Lane
    placed: put.Placed
    key: str
    owner: str
    """Who puts it, the same whenever it is tried again. The key's row says whose message it stands for."""


class Answer(NamedTuple):
    outcome: put.PutOutcome
    """The id under which the message with the key is, or an error."""
    known: bool
    """It is another message than the one that was to be put."""


@dataclass(slots=True)
class _Try:
    """One message on its way."""

    item: Keyed
    lane: Lane
    placed: put.Placed
    """Under the id that the key names, or will."""
    expect: dict[str, Value] = field(default_factory=lambda: {"status": None})
    """What the key's row must be like for our id to go into it."""
    owner: str = ""
    """Whose message the key stands for."""
    resuming: bool = False
    """Somebody else's put with this key may have been delivered, whatever becomes of ours."""
    answer: put.PutOutcome | None = None

    @property
    def number(self) -> int:
        return self.placed.number


class Reserved(Protocol):
    """Ids that were taken in a lane which is open now."""

    @property
    def lane(self) -> Lane: ...
    @property
    def first(self) -> int: ...


Reserve = Callable[[int], Awaitable[Reserved]]


async def put_keyed(
    items: Sequence[Keyed], lane_of: Callable[[int], Lane], now: Moment, reserve_again: Reserve
) -> list[Answer]:
    """For each where the message with its key is, or an error. Of equal keys the first is the one that is put."""
    tries: dict[str, _Try] = {}
    for item in items:
        lapses_at = max(item.placed.lapses_at, item.placed.enqueued_at + item.lane.settings.dedup_window_ms)
        tries.setdefault(item.key, _Try(item, item.lane, item.placed._replace(lapses_at=lapses_at)))
    for round_number in range(limits.PUT_ROUNDS):
        open_tries = [one for one in tries.values() if one.answer is None]
        if not open_tries:
            break
        await _one_round(open_tries, lane_of, round_number > 0, now, reserve_again)
    unfit = OutcomeUnknown("the key's message kept meeting finished buckets")
    answers = []
    for item in items:
        one = tries[item.key]
        answers.append(Answer(unfit if one.answer is None else one.answer, one.owner != item.owner))
    return answers


async def _one_round(
    tries: Sequence[_Try], lane_of: Callable[[int], Lane], again: bool, now: Moment, reserve_again: Reserve
) -> None:
    store = tries[0].lane.store
    for one in tries:
        one.owner = one.item.owner
    outcomes = await change_settled(store, [_change(one, one.expect, PENDING) for one in tries])
    ready = [one for one, outcome in zip(tries, outcomes, strict=True) if _owns(one, outcome, lane_of, again)]
    over = []
    for one in ready:
        if one.resuming:
            now_ms = one.item.placed.enqueued_at
            stands = await _as_it_stands(one.lane, one.placed, now_ms)
            if stands is None:
                over.append(one)
                one.placed = one.placed._replace(enqueued_at=now_ms)
            else:
                one.placed = stands
    by_lane: dict[int, list[_Try]] = {}
    for one in [one for one in ready if one not in over]:
        by_lane.setdefault(one.lane.number, []).append(one)
    for group in by_lane.values():
        written = await put.write(group[0].lane, [one.placed for one in group], now)
        for one in group:
            one.answer = written.outcomes.get(one.number)
            if one.answer is None and await given(one.lane, [one.number]):
                # Before its key was committed; since then its bucket was finished, or the queue purged.
                one.answer = MessageId(one.lane.number, one.number)
            elif isinstance(one.answer, AngelhairError) and (again or one.resuming):
                # An id that was given up may have been delivered all the same, by whoever slept.
                one.answer = OutcomeUnknown(str(one.answer))
    for one in over:
        if await given(one.lane, [one.number]):
            one.answer = MessageId(one.lane.number, one.number)
    await _commit([one for one in ready if isinstance(one.answer, MessageId)])
    await _move_on([one for one in ready if one.answer is None], reserve_again)


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
        one.expect = {"status": None}
        return False
    lapses_at = expires_at if isinstance(expires_at, int) else 0
    owner = str(found.get("attempt"))
    if isinstance(expires_at, int) and expires_at <= one.item.placed.enqueued_at and owner != one.item.owner:
        # It outlived its window: a copy of an old put's write that landed late, or the key of a run, which is kept for
        # that run alone to tell whether it was put. It counts as absent.
        one.expect = {"status": status, "lane": lane, "id": number, "attempt": found.get("attempt")}
        return False
    one.owner = owner
    if status == COMMITTED:
        one.answer = MessageId(lane, number)
        return False
    one.resuming = True
    one.lane = lane_of(lane)
    begun_at = found.get("enqueued_at")
    one.placed = one.placed._replace(
        number=number, lapses_at=max(one.placed.lapses_at, lapses_at),
        enqueued_at=begun_at if isinstance(begun_at, int) else one.placed.enqueued_at,
    )
    return True


async def _commit(tries: Sequence[_Try]) -> None:
    """A key that stays pending is completed by the next put with it, at the same id."""
    for _ in range(limits.SETTLE_ATTEMPTS):
        if not tries:
            return
        changes = [_change(one, _pending(one), COMMITTED) for one in tries]
        outcomes = await change_settled(tries[0].lane.store, changes)
        tries = [one for one, outcome in zip(tries, outcomes, strict=True) if isinstance(outcome, StoreError)]


async def _move_on(tries: Sequence[_Try], reserve_again: Reserve) -> None:
    """Ids that were never delivered and no longer can be: their keys move on to new ones."""
    if not tries:
        return
    for one in tries:
        one.expect = _pending(one)
    fresh = await reserve_again(len(tries))
    for offset, one in enumerate(tries):
        one.lane = fresh.lane
        one.placed = one.placed._replace(number=fresh.first + offset)


async def _as_it_stands(lane: Lane, placed: put.Placed, now_ms: int) -> put.Placed | None:
    """What the first put with this key wrote, if it came so far: two writers must not mix their columns in one row.
    None when it has expired unseen: under its id it stays so, whoever writes there."""
    kept_ms = lane.settings.retention_ms
    if kept_ms is not None and placed.enqueued_at + kept_ms <= now_ms:
        return None
    bucket = lane.bucket_of(placed.number)
    (found,) = await read_surely(lane.store, [Span(lane.bodies(bucket), placed.number, placed.number)])
    for row in found.rows:
        body, attributes, enqueued_at = (row.values.get(name) for name in ("body", "attributes", "enqueued_at"))
        visible_from, keyed = row.values.get("visible_from"), row.values.get("keyed")
        if isinstance(body, bytes) and isinstance(enqueued_at, int):
            delay_ms = visible_from - enqueued_at if isinstance(visible_from, int) else 0
            text = attributes if isinstance(attributes, str) else None
            message = NewMessage(body, text, delay_ms, placed.message.key)
            lapses_at = max(placed.lapses_at, keyed if isinstance(keyed, int) else 0)
            return placed._replace(message=message, enqueued_at=enqueued_at, lapses_at=lapses_at)
    return placed


def _pending(one: _Try) -> dict[str, Value]:
    return {"status": PENDING, "lane": one.lane.number, "id": one.number}


def _change(one: _Try, expect: Values, status: str) -> Change:
    item = one.item
    digest = hashlib.blake2b(item.key.encode(), digest_size=16).hexdigest()
    window_ms = item.lane.settings.dedup_window_ms
    values: Values = {
        "status": status,
        "lane": one.lane.number,
        "id": one.number,
        "attempt": one.owner,
        "expires_at": item.placed.enqueued_at + window_ms,
        "enqueued_at": one.placed.enqueued_at,
    }
    kept_ms = max(window_ms, item.placed.lapses_at - item.placed.enqueued_at)
    return Change(
        places.idempotency_key(item.lane.incarnation, digest),
        [RowChange(item.key, expect, values)],
        ttl_seconds=-(-kept_ms // 1000),
    )
