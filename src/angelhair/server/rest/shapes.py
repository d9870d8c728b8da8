"""Everything in JSON that this door takes or gives. All of it is closed: what is not named here is refused.

Durations are seconds and may have fractions, down to a millisecond. Times are RFC 3339, UTC, with milliseconds.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from angelhair import limits
from angelhair.server.rest.meanings import SETTINGS
from angelhair.server.rest.patterns import DUE_PATTERN, ID_PATTERN, NAME_PATTERN, RECEIPT_PATTERN

_LONGEST = limits.DURATION_MAXIMUM_MS // 1000

Seconds = Annotated[float, Meta(ge=0, le=_LONGEST)]
Name = Annotated[str, Meta(pattern=NAME_PATTERN, min_length=1, max_length=limits.NAME_LENGTH)]
Time = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$")]
Id = Annotated[str, Meta(pattern=ID_PATTERN)]
Count = Annotated[int, Meta(ge=0)]
LaneNumber = Annotated[int, Meta(ge=0, le=limits.LANE_NUMBER_MAXIMUM)]
BucketNumber = Annotated[int, Meta(ge=0, le=limits.INTEGER_LIMIT - 1)]
ContentType = Annotated[str, Meta(pattern="^[ -~]*$", min_length=1, max_length=limits.CONTENT_TYPE_LENGTH)]
Priority = Annotated[int, Meta(ge=0, le=limits.PRIORITIES_MAXIMUM - 1)]
ProducerDelay = Annotated[float, Meta(ge=0, le=limits.PRODUCER_DELAY_MAXIMUM_MS // 1000)]
Lock = Annotated[float, Meta(ge=limits.LOCK_MINIMUM_MS // 1000, le=limits.LOCK_MAXIMUM_MS // 1000)]
ExpireAfter = Annotated[
    float, Meta(ge=limits.EXPIRE_AFTER_MINIMUM_MS // 1000, le=limits.EXPIRE_AFTER_MAXIMUM_MS // 1000)
]
Kind = Literal["bucketed", "fifo", "timeline", "databag"]
PartitionCount = Annotated[int, Meta(ge=1, le=limits.BAG_SLICES)]
Granularity = Literal["minute", "hour", "day"]
State = Literal["open", "closed", "final", "settled", "finished", "dropped"]
Due = Annotated[str, Meta(pattern=DUE_PATTERN)] | Annotated[float, Meta(ge=0, le=limits.DUE_MAXIMUM_SECONDS)]


class Shape(Struct, forbid_unknown_fields=True):
    """The root of all."""

    beyond: ClassVar[dict[str, Any]] = {}
    """What the published schema says beyond the fields."""
    meanings: ClassVar[dict[str, str]] = {}
    """And of fields."""


# --- queues -----------------------------------------------------------------------------------------------------------


class Changes(Shape):
    """Settings that can change while a queue is in use. What is left out stays, or has its default in a new queue."""

    meanings = SETTINGS

    lanes: Annotated[int, Meta(ge=1, le=limits.LANES_MAXIMUM)] | UnsetType = UNSET
    visibility_timeout: Seconds | UnsetType = UNSET
    repair_timeout: Annotated[float, Meta(ge=limits.REPAIR_TIMEOUT_MINIMUM_MS / 1000, le=_LONGEST)] | UnsetType = UNSET
    delay: Seconds | UnsetType = UNSET
    retention: Annotated[float, Meta(ge=1, le=_LONGEST)] | UnsetType | None = UNSET
    max_deliveries: Annotated[int, Meta(ge=1, le=limits.DELIVERIES_MAXIMUM)] | UnsetType | None = UNSET
    dead_letter_queue: Name | UnsetType | None = UNSET
    history: Seconds | UnsetType = UNSET
    archive: bool | UnsetType = UNSET
    dedup_window: Annotated[float, Meta(ge=1, le=limits.TTL_MAXIMUM_SECONDS)] | UnsetType = UNSET
    dedup_scope: Literal["queue", "group"] | UnsetType = UNSET
    priorities: Annotated[int, Meta(ge=1, le=limits.PRIORITIES_MAXIMUM)] | UnsetType = UNSET
    fair: bool | UnsetType = UNSET
    shards: Annotated[int, Meta(ge=1, le=limits.SHARDS_MAXIMUM)] | UnsetType | None = UNSET
    producer_delay: ProducerDelay | UnsetType = UNSET
    expire_after: ExpireAfter | UnsetType | None = UNSET
    lock: Lock | UnsetType = UNSET
    min_partitions: PartitionCount | UnsetType = UNSET
    max_partitions: PartitionCount | UnsetType = UNSET


class NewQueue(Changes):
    """A new queue's settings; all have defaults."""

    kind: Kind | UnsetType = UNSET
    granularity: Granularity | UnsetType = UNSET
    bucket_size: Annotated[int, Meta(ge=limits.BUCKET_SIZE_MINIMUM, le=limits.BUCKET_SIZE_MAXIMUM)] | UnsetType = UNSET


class Settings(Shape, kw_only=True):
    """All settings of a queue; those that its kind does not have are left out."""

    meanings = SETTINGS

    kind: Kind
    bucket_size: int | UnsetType = UNSET
    lanes: int | UnsetType = UNSET
    visibility_timeout: float
    repair_timeout: float | UnsetType = UNSET
    delay: float | UnsetType = UNSET
    retention: float | UnsetType | None = UNSET
    max_deliveries: int | UnsetType | None = UNSET
    dead_letter_queue: Name | UnsetType | None = UNSET
    history: float | UnsetType = UNSET
    archive: bool | UnsetType = UNSET
    dedup_window: float | UnsetType = UNSET
    dedup_scope: Literal["queue", "group"] | UnsetType = UNSET
    priorities: int | UnsetType = UNSET
    fair: bool | UnsetType = UNSET
    shards: int | UnsetType = UNSET
    granularity: Granularity | UnsetType = UNSET
    producer_delay: float | UnsetType = UNSET
    expire_after: float | UnsetType | None = UNSET
    lock: float | UnsetType = UNSET
    min_partitions: int | UnsetType = UNSET
    max_partitions: int | UnsetType = UNSET


class Statistics(Shape):
    """Counts of messages; estimates when `exact` is false. `oldest_age` is that of the oldest one that waits."""

    visible: Count
    in_flight: Count
    delayed: Count
    dead: Count
    oldest_age: Annotated[float, Meta(ge=0)] | None
    exact: bool


class QueueSaid(Shape, kw_only=True):
    """A queue. `changeable`, `fixed`: which settings can change. `warnings`: what cannot work as it is set."""

    name: Name
    kind: Kind
    settings: Settings
    changeable: list[str]
    fixed: list[str]
    created_at: Time
    changed_at: Time
    warnings: list[str]


class Partitions(Shape, kw_only=True):
    """Of a databag: how it is cut, as it is in force on the server that was asked since its last sync; what is stored
    comes in force within `sync` seconds. `locked`: those that serve nothing now. `duplicates`: messages that were
    served after they had been deleted, as far as the store shows it."""

    count: Count
    min_partitions: Count
    max_partitions: Count
    visibility_timeout: float
    sync: float
    locked: Count
    epochs: Count
    duplicates: Count


class QueueShown(QueueSaid, kw_only=True):
    """A queue and what it holds. `partitions`: of a databag; null elsewhere."""

    statistics: Statistics
    partitions: Partitions | None


class QueueList(Shape):
    """Names in order. `next` goes into `after` for the page that follows; null when this was the last."""

    queues: list[Name]
    next: Name | None


# --- messages ---------------------------------------------------------------------------------------------------------


class Put(Shape):
    """The message was put."""

    id: Id
    queue: Name


class NewMessageItem(Shape):
    """A message of a batch: `body` as text or `body_base64`, one of them; `delay` in seconds or `due`, or neither."""

    body: str | UnsetType = UNSET
    body_base64: bytes | UnsetType = UNSET
    content_type: ContentType | UnsetType = UNSET
    delay: Seconds | UnsetType = UNSET
    due: Due | UnsetType = UNSET
    key: Annotated[str, Meta(min_length=1, max_length=limits.KEY_LENGTH)] | UnsetType = UNSET
    group: Annotated[str, Meta(min_length=1, max_length=limits.GROUP_LENGTH)] | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET

    beyond: ClassVar[dict[str, Any]] = {
        "oneOf": [{"required": ["body"]}, {"required": ["body_base64"]}],
        "not": {"required": ["delay", "due"]},
    }


NewMessages = Annotated[list[NewMessageItem], Meta(min_length=1, max_length=limits.BATCH_MESSAGES)]


class PutId(Shape):
    """The id of a message that was put."""

    id: Id


class ItemError(Shape):
    """What a single message met."""

    code: str
    message: str


class PutOutcome(Shape):
    """The id of a message that was put; or why it was not, or may not have been."""

    id: Id | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET

    beyond: ClassVar[dict[str, Any]] = {"oneOf": [{"required": ["id"]}, {"required": ["error"]}]}


class PutAll(Shape):
    """In the order of the request."""

    messages: list[PutId]
    queue: Name


class PutSome(Shape):
    """In the order of the request, with an error in the place of each message that was not put."""

    messages: list[PutOutcome]
    queue: Name


class Origin(Shape):
    """Where a message was moved here from."""

    queue: str
    id: str


class MessageSeen(Shape, omit_defaults=True, kw_only=True):
    """A message, seen without receiving it. `body_base64` in place of `body` when the body is not UTF-8; `due` in a
    timeline."""

    id: Id
    body: str | UnsetType = UNSET
    body_base64: bytes | UnsetType = UNSET
    content_type: str | None
    deliveries: Count
    enqueued_at: Time
    origin: Origin | None
    group: str | None = None
    priority: Priority = 0
    due: Time | None = None

    beyond: ClassVar[dict[str, Any]] = {"oneOf": [{"required": ["body"]}, {"required": ["body_base64"]}]}


class MessageDelivered(Shape, omit_defaults=True, kw_only=True):
    """One delivery of a message; its receipt acks or changes it. `body_base64` when the body is not UTF-8; `due` in a
    timeline."""

    id: Id
    receipt: Annotated[str, Meta(pattern=RECEIPT_PATTERN)]
    body: str | UnsetType = UNSET
    body_base64: bytes | UnsetType = UNSET
    content_type: str | None
    deliveries: Count
    enqueued_at: Time
    first_delivered_at: Time
    visible_at: Time
    origin: Origin | None
    group: str | None = None
    priority: Priority = 0
    due: Time | None = None

    beyond: ClassVar[dict[str, Any]] = MessageSeen.beyond


class Received(Shape):
    """As many as there were; an empty list when there are none."""

    messages: list[MessageDelivered]


class Seen(Shape):
    """Messages that could be received now; of a timeline all that are not processed, those first that are due first."""

    messages: list[MessageSeen]


class SeenDead(Shape):
    """Messages in the dead-letter queue, and its name."""

    queue: Name
    messages: list[MessageSeen]


class MessageChange(Shape):
    """What changes about a delivered message: its body; for how many seconds from now it is invisible (0: release)."""

    visibility: Seconds | UnsetType = UNSET
    body: str | UnsetType = UNSET
    body_base64: bytes | UnsetType = UNSET

    beyond: ClassVar[dict[str, Any]] = {"minProperties": 1, "not": {"required": ["body", "body_base64"]}}


class Acks(Shape):
    """Receipts of this queue. A bad one concerns nobody but itself."""

    receipts: Annotated[list[str], Meta(min_length=1, max_length=limits.BATCH_MESSAGES)]


class AckFailed(Shape):
    """A receipt that settled nothing, and why."""

    receipt: str
    code: str
    message: str


class Acked(Shape):
    """How many messages are settled now, and what is wrong with the other receipts."""

    acked: Count
    failed: list[AckFailed]


# --- operating --------------------------------------------------------------------------------------------------------


class Redrive(Shape):
    """Where to: a queue, or null for where each message came from. At most `count` messages."""

    destination: Name | None = None
    count: Annotated[int, Meta(ge=1, le=limits.BATCH_MESSAGES)] = limits.BATCH_MESSAGES


class Moved(Shape):
    """How many messages were moved."""

    moved: Count


class LanePointers(Shape):
    """The marks of one lane; `next_id` and `purged` are message numbers, the others bucket numbers."""

    lane: LaneNumber
    next_id: Count
    reader: Count
    final: Count
    settled: Count
    repair: Count
    floor: Count
    dropped: Count
    purged: Count
    archived: Count


class Pointers(Shape):
    """The marks of every lane."""

    lanes: list[LanePointers]


class Bucket(Shape):
    """One bucket: `messages` is the sum of the four counts that follow; `settled` ones are over and done with."""

    bucket: Count
    state: State
    messages: Count
    settled: Count
    visible: Count
    in_flight: Count
    delayed: Count


class Buckets(Shape):
    """A run of buckets of one lane."""

    lane: LaneNumber
    buckets: list[Bucket]


class MoveBack(Shape):
    """Where the repair mark of a lane is to go back to."""

    lane: LaneNumber
    bucket: BucketNumber


class MovedBack(Shape):
    """Where the repair mark stands now."""

    lane: LaneNumber
    repair: Count
