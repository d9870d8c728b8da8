"""What lies in delay lines, and what they are called. `kinds/delay_line.py` says what they are for."""

from __future__ import annotations

import json
from hashlib import blake2b

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


_SIGNATURE_BYTES = 16


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


def due_message(delivery: Delivery, secret: bytes) -> NewMessage:
    """As it is put into its queue when it is due. However often that is tried, it has the same key; and no user can
    name that key, who may know the id: the queue's secret is in it."""
    kept = json.loads(delivery.origin or "{}")
    first = First(MessageId.parse(kept["id"]), kept["at"])
    return NewMessage(
        delivery.body,
        delivery.attributes,
        delay_ms=0,
        key=f"{HIDDEN}due.{_signed(first.id, secret)}",
        origin=with_first(kept.get("origin"), first),
        group=kept.get("group"),
        priority=kept.get("priority", 0),
    )


def _signed(first: MessageId, secret: bytes) -> str:
    return f"{first}.{blake2b(str(first).encode(), key=secret, digest_size=_SIGNATURE_BYTES).hexdigest()}"


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


async def bury_orphan(store: Store, hidden: str, name: str) -> bool:
    """Deletes a line whose queue is gone, and says whether it was one. Who made it had not heard that the queue was
    deleted and buried, and did not live to look. That a queue is gone is for good: each incarnation is made once."""
    line = await catalog.load(store, hidden, name)
    if line is None or "queue" not in line.notes:
        return False
    # After the line was seen: the queue was there before it.
    account, incarnation = hidden.removeprefix(HIDDEN), name.removeprefix(LINE)
    queue = await catalog.load(store, account, str(line.notes["queue"]))
    if queue is not None and queue.incarnation == incarnation:
        return False
    return await bury_line(store, account, incarnation)
