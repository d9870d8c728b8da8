"""What lies in delay lines, and what they are called. `kinds/delay_line.py` says what they are for."""

from __future__ import annotations

import json

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import catalog
from angelhair.engine.bucketed.first import First, first_id, with_first
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.bucketed.put import Late, delay_of
from angelhair.engine.store import Store
from angelhair.errors import QueueNotFound
from angelhair.model import HIDDEN, TIMELINE, Delivery, MessageId, NewMessage, QueueSettings

LINE = "delays."
"""What the names of lines begin with, in the hidden accounts."""


def line_of(account: str, incarnation: str) -> tuple[str, str]:
    """The account and the name of the line of a queue."""
    return HIDDEN + account, LINE + incarnation


def is_line(account: str, name: str) -> bool:
    """Whoever works on its queue works on it too."""
    return account.startswith(HIDDEN) and name.startswith(LINE)


def line_settings() -> QueueSettings:
    return QueueSettings(
        kind=TIMELINE,
        lanes=1,
        granularity="minute",
        producer_delay_ms=limits.DELAY_LINE_PRODUCER_MS,
        expire_after_ms=None,
        lock_ms=limits.DELAY_LINE_LOCK_MS,
        visibility_timeout_ms=limits.DELAY_LINE_VISIBILITY_MS,
    )


def waiting_message(lane: Lane, item: Late) -> NewMessage:
    """As it lies in the line: what buckets know of a message and timelines do not is beside it."""
    message = item.message
    kept = {
        "id": str(first_id(lane.number, item.token)),
        "at": item.enqueued_at,
        "group": message.group,
        "priority": message.priority,
        "origin": message.origin,
    }
    text = json.dumps({name: value for name, value in kept.items() if value})
    due_ms = item.enqueued_at + delay_of(lane.settings, message)
    return NewMessage(message.body, message.attributes, origin=text, due_ms=due_ms)


def due_message(delivery: Delivery) -> NewMessage:
    """As it is put into its queue when it is due. However often that is tried, it has the same key."""
    kept = json.loads(delivery.origin or "{}")
    first = First(MessageId.parse(kept["id"]), kept["at"])
    return NewMessage(
        delivery.body,
        delivery.attributes,
        delay_ms=0,
        key=f"{HIDDEN}due.{first.id}",
        origin=with_first(kept.get("origin"), first),
        group=kept.get("group"),
        priority=kept.get("priority", 0),
    )


async def bury_line(store: Store, account: str, incarnation: str) -> bool:
    """Deletes the line of a queue, if it has one; whether it had."""
    hidden, name = line_of(account, incarnation)
    if await catalog.load(store, hidden, name) is None:
        return False
    try:
        await catalog.delete(store, hidden, name, Moment(await store.time_ms(), 0))
    except QueueNotFound:
        # By somebody else, just now.
        return False
    return True
