"""The values that cross every door: settings, messages, deliveries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from angelhair import limits
from angelhair.errors import InvalidRequest

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

DAY_MS = 86_400_000


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
    """Of a timeline: when its producer wanted it."""


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


BUCKETED, FIFO, TIMELINE = "bucketed", "fifo", "timeline"
"""The kinds of queues."""

FIFO_ENDING = ".fifo"
"""What the doors have the names of fifo queues end with, and of no others: clients of SQS tell them by it."""

BY_QUEUE, BY_GROUP = "queue", "group"
"""Among which messages of a fifo queue a key is one message: all of them, or those of its group."""

PART_MS = {"minute": 60_000, "hour": 3_600_000, "day": DAY_MS}
"""How long a part of a timeline is, by its granularity."""


class _Unsaid(int): ...


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How a queue behaves. Times in milliseconds; None means without end or without limit."""

    kind: str = BUCKETED
    bucket_size: int = 1_000
    lanes: int = _Unsaid(1)
    """Of a timeline its shards, six if nobody says; of other kinds one."""
    visibility_timeout_ms: int = 30_000
    repair_timeout_ms: int = 60_000
    delay_ms: int = 0
    retention_ms: int | None = 4 * DAY_MS
    max_deliveries: int | None = None
    dead_letter_queue: str | None = None
    history_ms: int = DAY_MS
    archive: bool = False
    dedup_window_ms: int = 300_000
    dedup_scope: str = BY_QUEUE
    priorities: int = 1
    fair: bool = True
    granularity: str = "minute"
    """Of a timeline: how much time lies in one partition."""
    producer_delay_ms: int = 60_000
    """Of a timeline: how far ahead of now rows are written at least."""
    expire_after_ms: int | None = 30 * DAY_MS
    """Of a timeline: how long after its time a row goes. None: with its part, once that is worked off."""
    lock_ms: int = 10_000
    """Of a timeline: how long the lock of a shard holds without being touched."""

    FIXED = ("kind", "bucket_size")
    """What cannot change while a queue lives: ids are cut into buckets by it."""
    FIXED_OF_FIFO = ("lanes",)
    """And of a fifo queue: a group must stay in its lane."""
    FIXED_OF_TIMELINE = ("granularity",)
    """And of a timeline: rows are found by their part."""

    def __post_init__(self) -> None:
        if type(self.lanes) is _Unsaid:
            object.__setattr__(self, "lanes", limits.SHARDS if self.kind == TIMELINE else 1)

    def validated(self) -> QueueSettings:
        validate_whole("bucket_size", self.bucket_size, limits.BUCKET_SIZE_MINIMUM, limits.BUCKET_SIZE_MAXIMUM)
        validate_whole("lanes", self.lanes, 1, self.lanes_maximum)
        _duration("visibility_timeout", self.visibility_timeout_ms, 0)
        _duration("repair_timeout", self.repair_timeout_ms, limits.REPAIR_TIMEOUT_MINIMUM_MS)
        _duration("delay", self.delay_ms, 0)
        _duration("history", self.history_ms, 0)
        _duration("dedup_window", self.dedup_window_ms, 1_000, limits.TTL_MAXIMUM_SECONDS * 1_000)
        if self.retention_ms is not None:
            _duration("retention", self.retention_ms, 1_000)
        if self.max_deliveries is not None:
            validate_whole("max_deliveries", self.max_deliveries, 1, 1_000_000)
        if self.dead_letter_queue is not None:
            validate_name("dead_letter_queue", self.dead_letter_queue)
        for name in ("archive", "fair"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidRequest(name, f"must be true or false, not {getattr(self, name)!r}")
        validate_whole("priorities", self.priorities, 1, limits.PRIORITIES_MAXIMUM)
        if self.kind not in (BUCKETED, FIFO, TIMELINE):
            raise InvalidRequest("kind", f"{self.kind!r} is none; there are 'bucketed', 'fifo' and 'timeline'")
        if self.dedup_scope not in (BY_QUEUE, BY_GROUP):
            raise InvalidRequest("dedup_scope", f"must be 'queue' or 'group', not {self.dedup_scope!r}")
        if self.kind != BUCKETED and self.priorities > 1:
            raise InvalidRequest("priorities", f"a queue of the kind {self.kind!r} has none")
        if self.archive and self.kind != BUCKETED:
            raise InvalidRequest("archive", f"a {self.kind} queue cannot be archived")
        self._validate_timeline()
        if self.kind == FIFO:
            self._validate_fifo()
        return self

    def _validate_fifo(self) -> None:
        _duration("dedup_window", self.dedup_window_ms, 1_000, limits.FIFO_WINDOW_MAXIMUM_MS)
        if self.lanes > 1 and self.dedup_scope != BY_GROUP:
            # A group lies in one lane whole, a key's messages do not.
            raise InvalidRequest("dedup_scope", "must be 'group' in a fifo queue with more than one lane")

    def _validate_timeline(self) -> None:
        """Whatever the kind: what is kept with a queue is sound, whoever heeds it."""
        if self.granularity not in PART_MS:
            raise InvalidRequest("granularity", f"must be 'minute', 'hour' or 'day', not {self.granularity!r}")
        _duration("producer_delay", self.producer_delay_ms, 0, limits.PRODUCER_DELAY_MAXIMUM_MS)
        _duration("lock", self.lock_ms, limits.LOCK_MINIMUM_MS, limits.LOCK_MAXIMUM_MS)
        if self.expire_after_ms is not None:
            least_ms, most_ms = limits.EXPIRE_AFTER_MINIMUM_MS, limits.EXPIRE_AFTER_MAXIMUM_MS
            _duration("expire_after", self.expire_after_ms, least_ms, most_ms)

    @property
    def lanes_maximum(self) -> int:
        return limits.SHARDS_MAXIMUM if self.kind == TIMELINE else limits.LANES_MAXIMUM

    @property
    def part_ms(self) -> int:
        return PART_MS[self.granularity]

    @property
    def fixed(self) -> tuple[str, ...]:
        """What of this queue cannot change while it lives."""
        endless = ("expire_after_ms",) if self.expire_after_ms is None else ()  # its rows would never go
        more = {FIFO: self.FIXED_OF_FIFO, TIMELINE: (*self.FIXED_OF_TIMELINE, *endless)}
        return (*self.FIXED, *more.get(self.kind, ()))

    def changed(self, changes: Mapping[str, Any]) -> QueueSettings:
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise InvalidRequest(name, "is not a setting of a queue")
            if name in self.fixed and changes[name] != getattr(self, name):
                raise InvalidRequest(name, "cannot change after the queue was created")
        return replace(self, **changes).validated()

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> QueueSettings:
        """Settings that a newer server wrote are passed over, so that an older one goes on serving."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})


def validate_name(field: str, name: object, longest: int = limits.NAME_LENGTH) -> str:
    if type(name) is not str:
        raise InvalidRequest(field, f"must be text, not {type(name).__name__}")
    if not 1 <= len(name) <= longest:
        raise InvalidRequest(field, f"must have 1 to {longest} characters, not {len(name)}")
    if not _NAME.fullmatch(name):
        raise InvalidRequest(field, "may hold letters, digits, '_', '-' and '.', and begins with none of '-' and '.'")
    return name


def validate_topic_name(name: object) -> str:
    return validate_name("topic", name, limits.TOPIC_NAME_LENGTH)


HIDDEN = "~"
"""What the accounts begin with in which queues lie that no door shows. No account of a user's begins like this."""


def validate_account(account: object) -> None:
    """As the engine takes it: a user's account, or the hidden one beside it. Doors let nobody name the latter."""
    hidden = type(account) is str and account.startswith(HIDDEN)
    validate_name("account", str(account).removeprefix(HIDDEN) if hidden else account)


def validate_message(message: NewMessage) -> None:
    # The very types, here and below: what a subclass makes of itself, a store would meet in the midst of a group.
    if type(message.body) is not bytes:
        raise InvalidRequest("body", f"must be bytes, not {type(message.body).__name__}")
    if len(message.body) > limits.BODY_BYTES:
        raise InvalidRequest("body", f"has {len(message.body)} bytes; the limit is {limits.BODY_BYTES}")
    if message.attributes is not None and _text_bytes("attributes", message.attributes) > limits.ATTRIBUTES_BYTES:
        raise InvalidRequest("attributes", f"are longer than {limits.ATTRIBUTES_BYTES} bytes")
    if message.origin is not None:
        _text_bytes("origin", message.origin)
    if message.delay_ms is not None:
        _duration("delay", message.delay_ms, 0)
    if message.key is not None:
        _text_bytes("key", message.key)
        if not 1 <= len(message.key) <= limits.KEY_LENGTH:
            raise InvalidRequest("key", f"must have 1 to {limits.KEY_LENGTH} characters")
    if message.group is not None:
        _short_text("group", message.group, limits.GROUP_LENGTH)
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
        _duration("visibility", ask.visibility_ms, 0)
    if ask.attempt is not None:
        _short_text("attempt", ask.attempt, limits.GROUP_LENGTH)
    if ask.consumer is not None:
        validate_consumer(ask.consumer)


def validate_consumer(consumer: str) -> None:
    _short_text("consumer", consumer, limits.GROUP_LENGTH)
    if consumer.startswith(HIDDEN):
        raise InvalidRequest("consumer", f"may not begin with {HIDDEN!r}: so do the servers' own")


def validate_change(change: WantedChange) -> None:
    if change.visibility_ms is not None:
        _duration("visibility", change.visibility_ms, 0)
    if change.body is not None:
        validate_message(NewMessage(change.body))


def _short_text(field: str, value: str, most: int) -> None:
    _text_bytes(field, value)
    if not 1 <= len(value) <= most:
        raise InvalidRequest(field, f"must have 1 to {most} characters")


def _text_bytes(field: str, value: object) -> int:
    """How long a text is as UTF-8, which is what every store keeps."""
    if type(value) is not str:
        raise InvalidRequest(field, f"must be text, not {type(value).__name__}")
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        raise InvalidRequest(field, "holds half of a surrogate pair, which is no character") from None


def validate_whole(field: str, value: object, least: int, most: int) -> None:
    if type(value) is not int:
        raise InvalidRequest(field, f"must be a whole number, not {value!r}")
    if not least <= value <= most:
        raise InvalidRequest(field, f"must be between {least} and {most}, not {value}")


def _duration(field: str, value_ms: object, least_ms: int, most_ms: int = limits.DURATION_MAXIMUM_MS) -> None:
    if type(value_ms) is not int:
        raise InvalidRequest(field, f"must be a whole number of milliseconds, not {value_ms!r}")
    if not least_ms <= value_ms <= most_ms:
        raise InvalidRequest(field, f"must be between {least_ms / 1000:g} and {most_ms // 1000} seconds")
