"""Setting aside: a message that stands in the way, or is to come later, is written again at a later time. That is
confirmed before the checkpoint passes the place where it lay, so nothing is lost in between (R8)."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.store import Values
from angelhair.engine.timeline.lane import Aside, Line
from angelhair.engine.timeline.parts import time_of
from angelhair.engine.timeline.put import Putting, put
from angelhair.engine.timeline.window import Entry, Held
from angelhair.model import DueId, MessageId, NewMessage, uuid_text


def message_of(values: Values) -> NewMessage:
    body, attributes, origin = values.get("body"), values.get("attributes"), values.get("origin")
    return NewMessage(
        body if isinstance(body, bytes) else b"",
        attributes if isinstance(attributes, str) else None,
        origin=origin if isinstance(origin, str) else None,
    )


async def set_aside(line: Line, items: Sequence[tuple[Held, Entry, int, int]]) -> int:
    """Writes messages again, each at this time by the wall clock and with so many deliveries; how many arrived. Those
    that did are settled where they were, and their receipts good for an ack as long as this server remembers."""
    # What was acked since it was chosen says nothing any more; and once is enough.
    items = [item for item in items if not (item[1].settled or item[1].on_its_way)]
    puttings = [again(entry.key, entry.values, at_ms, deliveries) for _, entry, at_ms, deliveries in items]
    for _, entry, _, _ in items:
        entry.on_its_way = True
    try:
        outcomes = await put(line, puttings)
    finally:
        for _, entry, _, _ in items:
            entry.on_its_way = False
    arrived = 0
    for (held, entry, _, _), outcome in zip(items, outcomes, strict=True):
        if isinstance(outcome, MessageId):
            arrived += 1
            place = (outcome.lane, uuid_text(outcome.number))
            if entry.settled:
                # Acked while it was being written.
                line.sessions.finish(place)
                continue
            line.sessions.set_aside((held.lane, entry.key), Aside(place, held.fence, entry.delivery, entry.given))
            held.settle(entry, None)
    return arrived


def again(key: str, values: Values, at_ms: int, deliveries: int) -> Putting:
    """A row's message, as it is put once more, above this time."""
    due, enqueued_at = values.get("due"), values.get("enqueued_at")
    putting = Putting(message_of(values), deliveries=deliveries, floor_ms=at_ms)
    putting.due_ms = due if isinstance(due, int) else time_of(key)
    putting.enqueued_at_ms = enqueued_at if isinstance(enqueued_at, int) else None
    return putting


def id_of(held: Held, entry: Entry) -> DueId:
    return DueId(held.lane, int(entry.key.replace("-", ""), 16))
