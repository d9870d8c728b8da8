"""De-duplication by key (R10): puts with one key within the queue's window are one message.

A key's row goes `pending(id)` → `committed(id)`. Whoever finds it pending writes the message at that same id before
it answers, so it does not matter who died in between. Keys lie in partitions by their hash, never by time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.bucketed import put
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.settling import change_one, read_surely
from angelhair.engine.store import Applied, Change, RowChange, Span, Value, Values
from angelhair.errors import AngelhairError, OutcomeUnknown, StoreError
from angelhair.model import MessageId, NewMessage

PENDING, COMMITTED = "pending", "committed"


class Keyed(NamedTuple):
    """A message with a key, and the id that was reserved in case it is the first with that key."""

    lane: Lane
    placed: put.Placed
    key: str


async def put_keyed(item: Keyed, lane_of: Callable[[int], Lane], attempt: str, now: Moment) -> put.PutOutcome:
    """The id under which the message with this key is, or an error."""
    lane, number = item.lane, item.placed.number
    lapses_at = item.placed.enqueued_at + item.lane.settings.dedup_window_ms
    resuming = False
    expect: dict[str, Value] = {"status": None}
    for round_number in range(limits.PUT_ROUNDS):
        token = f"{attempt}.{round_number}"
        outcome = await change_one(lane.store, _change(item, expect, PENDING, lane.number, number, token))
        if isinstance(outcome, StoreError):
            # The key may stand as pending: a later put with the same key would then complete this one.
            return OutcomeUnknown(str(outcome)) if round_number else outcome
        if not isinstance(outcome, Applied):
            found = outcome.rows.get(item.key, {})
            status, found_lane, found_number = found.get("status"), found.get("lane"), found.get("id")
            if not isinstance(found_lane, int) or not isinstance(found_number, int):
                expect = {"status": None}
                continue
            expires_at = found.get("expires_at")
            if isinstance(expires_at, int) and expires_at <= item.placed.enqueued_at:
                # It outlived its window: a copy of an old put's write that landed late. It counts as absent.
                expect = {"status": status, "lane": found_lane, "id": found_number, "attempt": found.get("attempt")}
                continue
            if status == COMMITTED:
                return MessageId(found_lane, found_number)
            lane, number, token = lane_of(found_lane), found_number, str(found.get("attempt"))
            # Its first put may have been delivered, whatever becomes of ours.
            resuming = True
            lapses_at = max(lapses_at, expires_at if isinstance(expires_at, int) else 0)
            placed = await _as_it_stands(lane, item.placed._replace(number=number, lapses_at=lapses_at))
        else:
            placed = item.placed._replace(number=number, lapses_at=lapses_at)
        written = await put.write(lane, [placed], now)
        result = written.outcomes.get(number)
        if result is None and await _was_delivered(lane, number):
            # Before its key was committed; since then its bucket was finished, or the queue purged.
            result = MessageId(lane.number, number)
        if result is not None:
            if isinstance(result, AngelhairError):
                # An id that was given up may have been delivered all the same, by whoever slept.
                return OutcomeUnknown(str(result)) if round_number or resuming else result
            commit = _change(item, _pending(lane.number, number), COMMITTED, lane.number, number, token)
            for _ in range(limits.SETTLE_ATTEMPTS):
                # A key that stays pending is completed by the next put with it, at the same id.
                if not isinstance(await change_one(lane.store, commit), StoreError):
                    break
            return result
        # The id was never delivered and no longer can be: its bucket is finished. The key moves on to a new one.
        expect = _pending(lane.number, number)
        lane = item.lane
        number = await put.reserve(lane, 1, f"{token}.again")
    return OutcomeUnknown("the key's message kept meeting finished buckets")


async def _was_delivered(lane: Lane, number: int) -> bool:
    """Whether a message that can no longer be put was given out or moved. See retire.py: its bucket is still there."""
    (found,) = await read_surely(lane.store, [Span(lane.states(lane.bucket_of(number)), number, number)])
    return any(row.values.get("delivery") or row.values.get("settled") is not None for row in found.rows)


async def _as_it_stands(lane: Lane, placed: put.Placed) -> put.Placed:
    """What the first put with this key wrote, if it came so far: two writers must not mix their columns in one row."""
    (found,) = await read_surely(
        lane.store, [Span(lane.bodies(lane.bucket_of(placed.number)), placed.number, placed.number)]
    )
    for row in found.rows:
        body, attributes, enqueued_at = (row.values.get(name) for name in ("body", "attributes", "enqueued_at"))
        visible_from, keyed = row.values.get("visible_from"), row.values.get("keyed")
        retention_ms = lane.settings.retention_ms
        if (
            isinstance(enqueued_at, int)
            and retention_ms is not None
            and enqueued_at + retention_ms <= placed.enqueued_at
        ):
            # It was never confirmed, and has expired unseen: as it stands nobody would receive it.
            return placed
        if isinstance(body, bytes) and isinstance(enqueued_at, int):
            delay_ms = visible_from - enqueued_at if isinstance(visible_from, int) else 0
            text = attributes if isinstance(attributes, str) else None
            message = NewMessage(body, text, delay_ms, placed.message.key)
            lapses_at = max(placed.lapses_at, keyed if isinstance(keyed, int) else 0)
            return placed._replace(message=message, enqueued_at=enqueued_at, lapses_at=lapses_at)
    return placed


def _pending(lane: int, number: int) -> dict[str, Value]:
    return {"status": PENDING, "lane": lane, "id": number}


def _change(item: Keyed, expect: Values, status: str, lane: int, number: int, token: str) -> Change:
    digest = hashlib.blake2b(item.key.encode(), digest_size=16).hexdigest()
    window_ms = item.lane.settings.dedup_window_ms
    values: Values = {
        "status": status,
        "lane": lane,
        "id": number,
        "attempt": token,
        "expires_at": item.placed.enqueued_at + window_ms,
    }
    window_seconds = -(-window_ms // 1000)
    return Change(
        places.idempotency_key(item.lane.incarnation, digest),
        [RowChange(item.key, expect, values)],
        ttl_seconds=window_seconds,
    )
