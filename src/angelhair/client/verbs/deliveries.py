"""What a consumer does: receive, ack, extend, release, change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from angelhair import limits
from angelhair.client import reading
from angelhair.client.bodies import body_bytes, body_fields
from angelhair.client.paths import of_message, of_queue, receipt_of
from angelhair.client.plans import Call, Plan, Repeat, Request, nothing
from angelhair.client.refusals import from_code
from angelhair.client.retrying import Manner, exchange, exchange_items
from angelhair.client.values import AckFailure, Delivered, Message, Receipt, Seconds
from angelhair.client.verbs.queues import JSON
from angelhair.errors import AngelhairError, StaleReceipt
from angelhair.model import validate_name, validate_whole

SETTLED = "settled"


def receive(
    manner: Manner,
    queue: str,
    count: int = 1,
    *,
    wait: Seconds = 0,
    visibility: Seconds | None = None,
    consumer: str | None = None,
) -> Plan[list[Message]]:
    """Up to so many messages, hidden from others for `visibility` (the queue's own time-out if not given).
    `consumer`: of a timeline, whose shards they come from.

    Without `wait` the answer comes at once, be it empty; with it, as soon as there is something. If the answer is lost,
    the messages in it come again when their visibility ends.
    """
    validate_whole("count", count, 1, limits.BATCH_MESSAGES)
    query = {"wait": str(wait)} if wait else {}
    if visibility is not None:
        query["visibility"] = str(visibility)
    if consumer is not None:
        query["consumer"] = validate_name("consumer", consumer)
    request = Request("GET", of_queue(queue, "messages", str(count)), query)

    def read(found: Mapping[str, Any]) -> list[Message]:
        return [reading.message(queue, each) for each in found["messages"]]

    return (
        yield from exchange(manner, Call(request, reading.reads(read), Repeat.SAFE, wait_seconds=wait, queue=queue))
    )


def ack(manner: Manner, message: Delivered) -> Plan[None]:
    """Settles the message for good. Again is as good as once; after another delivery it is `StaleReceipt`."""
    request = Request("DELETE", of_message(message))
    yield from exchange(manner, Call(request, nothing, Repeat.SAFE, queue=message.queue))


def ack_many(manner: Manner, messages: Iterable[Delivered]) -> Plan[list[AckFailure]]:
    """Settles any number of messages, of one or several queues; returns those that it could not settle."""
    by_queue: dict[str, list[Receipt]] = {}
    for receipt in map(receipt_of, messages):
        by_queue.setdefault(receipt.queue, []).append(receipt)
    failures: list[AckFailure] = []
    for queue, receipts in by_queue.items():
        for first in range(0, len(receipts), limits.BATCH_MESSAGES):
            portion = receipts[first : first + limits.BATCH_MESSAGES]
            outcomes = yield from exchange_items(manner, portion, _asking_to_ack(queue))
            failures += [
                AckFailure(receipt, outcome)
                for receipt, outcome in zip(portion, outcomes, strict=True)
                if isinstance(outcome, AngelhairError)
            ]
    return failures


def extend(manner: Manner, message: Delivered, visibility: Seconds) -> Plan[None]:
    """Keeps the message hidden for this long from now on."""
    yield from _change(manner, message, {"visibility": visibility})


def release(manner: Manner, message: Delivered, delay: Seconds = 0) -> Plan[None]:
    """Gives the message back: it is delivered again, at once or after the delay."""
    # A second try that finds it with somebody else finds what was wanted.
    yield from _change(manner, message, {"visibility": delay}, done_if=(StaleReceipt,))


def change(
    manner: Manner, message: Delivered, body: bytes | str, *, visibility: Seconds | None = None
) -> Plan[None]:
    """Replaces the body for later deliveries, and keeps the message hidden for `visibility` if it is given."""
    fields = body_fields(body_bytes(body))
    if visibility is not None:
        fields["visibility"] = visibility
    yield from _change(manner, message, fields)


def _change(
    manner: Manner, message: Delivered, fields: Mapping[str, Any], done_if: tuple[type[AngelhairError], ...] = ()
) -> Plan[None]:
    request = Request("PATCH", of_message(message), {}, json.dumps(fields).encode(), JSON)
    yield from exchange(manner, Call(request, nothing, Repeat.SAFE, queue=message.queue, done_if=done_if))


def _asking_to_ack(queue: str) -> Callable[[Sequence[Receipt]], Call[list[str | AngelhairError]]]:
    def ask(receipts: Sequence[Receipt]) -> Call[list[str | AngelhairError]]:
        texts = [each.receipt for each in receipts]
        body = json.dumps({"receipts": texts}).encode()

        def read(found: Mapping[str, Any]) -> list[str | AngelhairError]:
            failed = {each["receipt"]: each for each in found["failed"]}
            return [
                from_code(failed[text]["code"], failed[text]["message"], failed[text], queue)
                if text in failed else SETTLED
                for text in texts
            ]

        request = Request("POST", of_queue(queue, "acks"), {}, body, JSON)
        return Call(request, reading.reads(read), Repeat.SAFE, queue=queue)

    return ask



