"""ReceiveMessage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from angelhair.engine.catalog import Queue
from angelhair.model import FIFO, Ask, Delivery, Peeked
from angelhair.server.aws.carried import Carried, sequence_number, unpack
from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.polling import Look, Patience
from angelhair.server.sqs.actions import handles, kept
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.checks.receipts import PEEK
from angelhair.server.sqs.checksums import md5_of_attributes, md5_of_body
from angelhair.server.sqs.inputs import ReceiveMessageRequest
from angelhair.server.sqs.outputs import Message, ReceiveMessageResult

ALL = ("All", ".*")
"""Both mean every attribute of a message."""

ORIGIN_PARTS = 3
"""Account, queue and id."""


async def receive_message(call: Call, wanted: ReceiveMessageRequest) -> ReceiveMessageResult:
    queue = await call.queue(wanted.queue_url)
    system = frozenset(wanted.wanted_system_attributes)
    names = wanted.message_attribute_names
    if PEEK in system:
        seen = await call.service.engine.peek(queue.account, queue.name, wanted.max_number_of_messages or 1)
        return ReceiveMessageResult([_message(call, queue.name, peeked, 0, system, names) for peeked in seen])
    hidden = wanted.visibility_timeout
    ask = Ask(
        wanted.max_number_of_messages or 1, None if hidden is None else hidden * 1000,
        attempt=wanted.receive_request_attempt_id,
    )
    wait = kept.wait_seconds(queue) if wanted.wait_time_seconds is None else wanted.wait_time_seconds
    patience = Patience()
    # A client that leaves while it waits would take a message along that nobody sees until its visibility is over.
    call.request.on_leave = patience.end
    if call.request.client_left:
        wait = 0
    deliveries = await call.service.receive(
        queue.account, queue.name, ask, wait, patience, _within_limit(call, queue, wait)
    )
    received_at_ms = call.service.clock.now().wall_ms
    return ReceiveMessageResult(
        [_message(call, queue.name, delivery, received_at_ms, system, names) for delivery in deliveries]
    )


def _within_limit(call: Call, queue: Queue, wait_seconds: int) -> Look | None:
    """How to look at a queue that lets only so many messages be in flight. As at Amazon, nobody who waits is told that
    there are too many, and nobody of a FIFO queue: they find nothing."""
    limit = kept.in_flight_limit(queue)
    if not limit:
        return None
    is_told = wait_seconds == 0 and queue.settings.kind != FIFO
    return lambda _account, _name, ask: call.flights.receive(queue, limit, ask, is_told)


def _message(
    call: Call, queue: str, delivery: Delivery | Peeked, received_at_ms: int, system: frozenset[str],
    names: Sequence[str],
) -> Message:
    carried = unpack(delivery, call.account, queue)
    # What came through another door may be no text; whoever wants its bytes goes through that door.
    body = delivery.body.decode(errors="replace")
    # What was only looked at has none.
    handle = handles.encode(delivery.receipt, received_at_ms) if isinstance(delivery, Delivery) else ""
    message = Message(carried.id, handle, md5_of_body(body.encode()), body)
    if system:
        message.attributes = _system_attributes(call, delivery, carried, system)
    if names and carried.attributes:
        chosen = _chosen(carried.attributes, names)
        if chosen:
            message.message_attributes = chosen
            message.md5_of_message_attributes = md5_of_attributes(chosen)
    return message


_SYSTEM: dict[str, Callable[[Call, Delivery | Peeked, Carried], str | None]] = {
    "SenderId": lambda call, _, carried: carried.sender or call.account,
    "SentTimestamp": lambda _call, delivery, _: str(delivery.enqueued_at_ms),
    "ApproximateReceiveCount": lambda _call, delivery, _: str(delivery.deliveries),
    "ApproximateFirstReceiveTimestamp": lambda _call, delivery, _: (
        str(delivery.first_delivered_at_ms) if isinstance(delivery, Delivery) else None
    ),
    "MessageGroupId": lambda _call, delivery, carried: delivery.group or carried.group,
    "MessageDeduplicationId": lambda _call, _, carried: carried.dedup,
    "SequenceNumber": lambda _call, delivery, _: None if delivery.group is None else sequence_number(delivery.id),
    "AWSTraceHeader": lambda _call, _, carried: carried.trace,
    "DeadLetterQueueSourceArn": lambda call, delivery, _: _source_arn(call, delivery.origin),
}


def _system_attributes(
    call: Call, delivery: Delivery | Peeked, carried: Carried, names: frozenset[str]
) -> dict[str, str]:
    values = {
        name: value(call, delivery, carried) for name, value in _SYSTEM.items() if name in names or "All" in names
    }
    return {name: value for name, value in values.items() if value is not None}


def _source_arn(call: Call, origin: str | None) -> str | None:
    parts = (origin or "").split("/")
    return call.arn_of(parts[1]) if len(parts) == ORIGIN_PARTS else None


def _chosen(
    attributes: Mapping[str, MessageAttributeValue], names: Sequence[str]
) -> dict[str, MessageAttributeValue]:
    """Those that were asked for: by name, by the beginning of a name with `.*` behind it, or all."""
    if any(name in ALL for name in names):
        return dict(attributes)
    beginnings = tuple(name.removesuffix("*") for name in names if name.endswith(".*"))
    return {
        name: value
        for name, value in attributes.items()
        if name in names or (beginnings and name.startswith(beginnings)) or f"{name}." in beginnings
    }
