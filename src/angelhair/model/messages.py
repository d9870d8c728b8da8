"""Messages as they come and go, what is asked for, and what such may hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.errors import InvalidRequest
from angelhair.model.checks import HIDDEN, short_text, text_bytes, validate_duration, validate_whole

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class MessageId(NamedTuple):
    """A message's place: ids grow by one within a lane."""

    lane: int
    number: int

    def __str__(self) -> str:
        return f"{self.lane}-{self.number}"

    @staticmethod
    def parse(text: str) -> MessageId:
        lane, dash, number = text.partition("-")
        if dash and lane.isascii() and lane.isdigit():
            if number.isascii() and number.isdigit():
                return MessageId(int(lane), int(number))
            if _UUID.fullmatch(number):
                return DueId(int(lane), int(number.replace("-", ""), 16))
        raise InvalidRequest("id", f"{text!r} is not a message id such as '0-17'")


class DueId(MessageId):
    """A message's place in a timeline: its shard, and as number the time UUID of its row."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.lane}-{uuid_text(self.number)}"


def uuid_text(number: int) -> str:
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class NewMessage(NamedTuple):
    """What a producer puts."""

    body: bytes
    attributes: str | None = None
    delay_ms: int | None = None
    """None takes the queue's own delay."""
    key: str | None = None
    """An idempotency key: puts with the same key within the queue's window are one message."""
    origin: str | None = None
    """The queue and id it came from, when it was moved."""
    group: str | None = None
    """Of a fifo queue: messages of one group are delivered in order. Of a bucketed one: whose message it is; a tenant
    that floods the queue is served after the others."""
    priority: int = 0
    """Of a bucketed queue with priorities: a higher one is served first."""
    due_ms: int | None = None
    """Of a timeline: when it is due, in wall time. None: now, or after its delay."""


class Ask(NamedTuple):
    """What a consumer asks for."""

    messages: int
    visibility_ms: int | None = None
    """None takes the queue's visibility time-out."""
    attempt: str | None = None
    """Of a fifo queue: asked again with the same attempt, while all of it is hidden and untouched, it is answered with
    the same deliveries."""
    consumer: str | None = None
    """Of a timeline: whose shards to look into. None: those that the server holds for all who do not say."""


class WantedChange(NamedTuple):
    """What is to change about a delivered message; None leaves it."""

    receipt: str
    visibility_ms: int | None = None
    """From now on; 0 releases it."""
    body: bytes | None = None
    in_flight: bool = False
    """Only while it is hidden. Otherwise a message whose time-out has passed, and that nobody received since, is hidden
    again."""


class Delivery(NamedTuple):
    """One delivery of one message to one consumer."""

    id: MessageId
    receipt: str
    body: bytes
    attributes: str | None
    deliveries: int
    enqueued_at_ms: int
    first_delivered_at_ms: int
    visible_at_ms: int
    origin: str | None
    group: str | None = None
    priority: int = 0
    due_ms: int | None = None


class Peeked(NamedTuple):
    """A message seen without receiving it."""

    id: MessageId
    body: bytes
    attributes: str | None
    deliveries: int
    enqueued_at_ms: int
    origin: str | None
    group: str | None = None
    priority: int = 0
    due_ms: int | None = None


def validate_message(message: NewMessage) -> None:
    # The very types, here and below: what a subclass makes of itself, a store would meet in the midst of a group.
    if type(message.body) is not bytes:
        raise InvalidRequest("body", f"must be bytes, not {type(message.body).__name__}")
    if len(message.body) > limits.BODY_BYTES:
        raise InvalidRequest("body", f"has {len(message.body)} bytes; the limit is {limits.BODY_BYTES}")
    if message.attributes is not None and text_bytes("attributes", message.attributes) > limits.ATTRIBUTES_BYTES:
        raise InvalidRequest("attributes", f"are longer than {limits.ATTRIBUTES_BYTES} bytes")
    if message.origin is not None:
        text_bytes("origin", message.origin)
    if message.delay_ms is not None:
        validate_duration("delay", message.delay_ms, 0)
    if message.key is not None:
        text_bytes("key", message.key)
        if not 1 <= len(message.key) <= limits.KEY_LENGTH:
            raise InvalidRequest("key", f"must have 1 to {limits.KEY_LENGTH} characters")
    if message.group is not None:
        short_text("group", message.group, limits.GROUP_LENGTH)
    if message.priority != 0:
        validate_whole("priority", message.priority, 0, limits.PRIORITIES_MAXIMUM - 1)
    if message.due_ms is not None:
        validate_whole("due", message.due_ms, 0, limits.DUE_MAXIMUM_MS)


def validate_timeline_message(message: NewMessage) -> None:
    """What a timeline asks for beyond `validate_message`."""
    if message.key is not None:
        raise InvalidRequest("key", "a timeline knows no keys: its messages are to be such that twice does no harm")
    if None not in (message.due_ms, message.delay_ms):
        raise InvalidRequest("due", "a message has a due time or a delay, not both")
    for name, value in (("group", message.group), ("priority", message.priority)):
        if value:
            raise InvalidRequest(name, "a timeline has none: its messages are ordered by their due times")


def validate_databag_message(message: NewMessage) -> None:
    """What a databag asks for beyond `validate_message`."""
    if message.delay_ms:
        raise InvalidRequest("delay", "a databag has none: what is put there may be served at once")
    for name, value in (("group", message.group), ("priority", message.priority)):
        if value:
            raise InvalidRequest(name, "a databag has none: its messages are in no order")


def validate_fifo_message(message: NewMessage) -> None:
    """What a fifo queue asks for beyond `validate_message`."""
    if message.group is None:
        raise InvalidRequest("group", "is needed in a fifo queue")
    if message.key is None:
        raise InvalidRequest("key", "is needed in a fifo queue")
    if message.delay_ms:
        raise InvalidRequest("delay", "a fifo queue has one delay for all of its messages")
    if message.origin is not None:
        raise InvalidRequest("origin", "is what a move to a fifo queue writes, and nobody else")
    if message.priority:
        raise InvalidRequest("priority", "a fifo queue has none: its messages keep their order")
    if message.due_ms is not None:
        raise InvalidRequest("due", "only timelines have due times")


def validate_bodies(bodies: Sequence[bytes]) -> None:
    """As `validate_message`, for many that are nothing but their bodies."""
    if {*map(type, bodies)} != {bytes} or max(map(len, bodies)) > limits.BODY_BYTES:
        for body in bodies:
            validate_message(NewMessage(body))


def validate_ask(ask: Ask) -> None:
    validate_whole("messages", ask.messages, 1, limits.BATCH_MESSAGES)
    if ask.visibility_ms is not None:
        validate_duration("visibility", ask.visibility_ms, 0)
    if ask.attempt is not None:
        short_text("attempt", ask.attempt, limits.GROUP_LENGTH)
    if ask.consumer is not None:
        validate_consumer(ask.consumer)


def validate_consumer(consumer: str) -> None:
    short_text("consumer", consumer, limits.GROUP_LENGTH)
    if consumer.startswith(HIDDEN):
        raise InvalidRequest("consumer", f"may not begin with {HIDDEN!r}: so do the servers' own")


def validate_change(change: WantedChange) -> None:
    if change.visibility_ms is not None:
        validate_duration("visibility", change.visibility_ms, 0)
    if change.body is not None:
        validate_message(NewMessage(change.body))
