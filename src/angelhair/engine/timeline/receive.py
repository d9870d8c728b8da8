"""Receive: what is due in the shards that a consumer holds, in the order of time within each."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.timeline import consumer, receipts
from angelhair.engine.timeline.aside import id_of
from angelhair.engine.timeline.lane import Line, Session
from angelhair.engine.timeline.read import fill
from angelhair.engine.timeline.window import Entry, Held
from angelhair.engine.waiting import Waiting
from angelhair.model import Delivery


async def receive(line: Line, session: Session, group: Sequence[Waiting]) -> None:
    """Gives to each what it asked for, as far as there is something. Raises `QueueGone`."""
    if consumer.touch_due(line, session, line.clock.now()):
        await consumer.touch(line, session)
    helds = _in_turn(line, session)
    for _ in range(limits.TIMELINE_FILLS):
        wanting = [waiting for waiting in group if waiting.missing > 0]
        if not helds or not wanting:
            return
        more = await fill(line, helds)
        now = line.clock.now()
        # What was read is dated after it was read: only who still believes in its lock gives (W9).
        helds = [held for held in helds if held.believed(now) and line.held(held.lane) is held]
        for waiting in wanting:
            _give(line, helds, waiting, now)
        if not more:
            return


def _in_turn(line: Line, session: Session) -> list[Held]:
    now = line.clock.now()
    helds = [held for held in line.held_by(session) if held.believed(now) and not held.leaving]
    line.sessions.turn += 1
    start = line.sessions.turn % len(helds) if helds else 0
    return helds[start:] + helds[:start]


def _give(line: Line, helds: Sequence[Held], waiting: Waiting, now: Moment) -> None:
    visibility_ms = waiting.ask.visibility_ms
    hide_ms = line.settings.visibility_timeout_ms if visibility_ms is None else visibility_ms
    for held in helds:
        while waiting.missing > 0 and (entry := held.next_visible(now)) is not None:
            if _exhausted(line, entry):
                held.exhausted.append(entry)
                continue
            waiting.deliveries.append(_delivery(line, held, entry, now, hide_ms))


def _exhausted(line: Line, entry: Entry) -> bool:
    settings = line.settings
    limited = settings.max_deliveries is not None and settings.dead_letter_queue is not None
    return limited and entry.delivery >= (settings.max_deliveries or 0)


def _delivery(line: Line, held: Held, entry: Entry, now: Moment, hide_ms: int) -> Delivery:
    entry.delivery += 1
    entry.changed = False
    if not entry.given:
        entry.given, entry.first_given_ms, entry.first_given_at_ms = True, now.monotonic_ms, now.wall_ms
    # Not for nothing, or the same receive would be given it again.
    held.hide(entry, now.monotonic_ms + max(1, hide_ms))
    place = id_of(held, entry)
    receipt = receipts.Receipt(held.lane, place.number, entry.delivery, held.fence)
    values = entry.values
    body, attributes, origin = values.get("body"), values.get("attributes"), values.get("origin")
    enqueued_at, due = values.get("enqueued_at"), values.get("due")
    return Delivery(
        place,
        receipts.encode(line.incarnation, line.secret, receipt),
        body if isinstance(body, bytes) else b"",
        attributes if isinstance(attributes, str) else None,
        entry.delivery,
        enqueued_at if isinstance(enqueued_at, int) else 0,
        entry.first_given_at_ms or now.wall_ms,
        now.wall_ms + hide_ms,
        origin if isinstance(origin, str) else None,
        due_ms=due if isinstance(due, int) else None,
    )
