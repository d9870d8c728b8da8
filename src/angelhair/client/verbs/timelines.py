"""What timelines have of their own: puts that are due, the consumers that share the shards, a look at the shards.

A put here has no idempotency key: who puts again because the answer was lost may put twice, and what is put twice is
processed twice. At least once is what a timeline promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from angelhair.client import reading
from angelhair.client.paths import of_consumer, of_queue
from angelhair.client.plans import Call, Plan, Repeat, Request, nothing
from angelhair.client.retrying import Manner, exchange
from angelhair.client.values import Draft, PutOutcome, Seconds, Shard, Share
from angelhair.client.verbs.puts import put_draft, put_drafts


def put(
    manner: Manner,
    queue: str,
    body: bytes | str,
    *,
    due: datetime | None = None,
    delay: Seconds | None = None,
    content_type: str | None = None,
) -> Plan[str]:
    """Puts one message that is due at a time, after a delay, or now; returns its id. Text is put as UTF-8."""
    return (yield from put_draft(manner, queue, Draft(body, content_type, delay, due), Repeat.SAFE))


def put_many(manner: Manner, queue: str, messages: Iterable[bytes | str | Draft]) -> Plan[list[PutOutcome]]:
    """Puts any number of messages, in as few requests as the server takes; an outcome for each, in their order."""
    drafts = [each if isinstance(each, Draft) else Draft(each) for each in messages]
    return (yield from put_drafts(manner, queue, drafts, _twice_is_allowed))


def _twice_is_allowed(_: Sequence[Draft]) -> Repeat:
    return Repeat.SAFE


def shards(manner: Manner, queue: str) -> Plan[list[Shard]]:
    """The shards in the order of their numbers: who works on each, and how far it has come."""
    call = Call(Request("GET", of_queue(queue, "shards")), reading.reads(reading.shards), Repeat.READS, queue=queue)
    return (yield from exchange(manner, call))


def touch(manner: Manner, queue: str, consumer: str) -> Plan[Share]:
    """Says that a consumer is there: it takes its share of the shards, and keeps those that it has."""
    request = Request("PUT", of_consumer(queue, consumer))
    return (yield from exchange(manner, Call(request, reading.reads(reading.share), Repeat.SAFE, queue=queue)))


def leave(manner: Manner, queue: str, consumer: str) -> Plan[None]:
    """Says goodbye: others need not wait until the locks of this consumer lapse."""
    request = Request("DELETE", of_consumer(queue, consumer))
    yield from exchange(manner, Call(request, nothing, Repeat.SAFE, queue=queue))
