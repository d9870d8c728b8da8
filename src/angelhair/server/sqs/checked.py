"""What the checks make of a request where they know more than the wire said."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

from angelhair.server.aws.errors import AwsError
from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sqs.inputs import ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry
from angelhair.server.sqs.outputs import BatchResultErrorEntry

Entry = TypeVar("Entry")


class OutgoingMessage(Struct):
    """A message that may be sent, with all that its answer needs. Only its queue can still refuse it."""

    body: bytes
    size_bytes: int
    """Of the body and the attributes: what the queue's MaximumMessageSize is about."""
    md5_of_body: str
    delay_seconds: int | None
    group_id: str | None
    deduplication_id: str | None
    attributes: dict[str, MessageAttributeValue]
    md5_of_attributes: str | None
    trace_header: str | None
    md5_of_system_attributes: str | None
    priority: int = 0
    beyond: AwsError | None = None
    """Why SQS would refuse it. A queue with wide limits takes it."""


class SendMessage(Struct):
    queue_url: str
    message: OutgoingMessage


class OutgoingEntry(Struct):
    id: str
    message: OutgoingMessage


class Batch(Struct, Generic[Entry]):
    """The entries that stood their checks, and the failures of the others, which belong into the answer."""

    queue_url: str
    entries: list[Entry]
    failed: list[BatchResultErrorEntry]
    beyond: AwsError | None = None
    """As of a message, of all of it."""


SendMessageBatch = Batch[OutgoingEntry]
DeleteMessageBatch = Batch[DeleteMessageBatchRequestEntry]
ChangeMessageVisibilityBatch = Batch[ChangeMessageVisibilityBatchRequestEntry]


class RedrivePolicy(Struct):
    dead_letter_target_arn: str
    dead_letter_queue: str
    """The name in the ARN."""
    max_receive_count: int


class RedriveAllowPolicy(Struct):
    permission: Literal["allowAll", "denyAll", "byQueue"]
    source_queue_arns: list[str]


class QueueAttributes(Struct):
    """What was set, typed; UNSET what was not named, None what was named to be removed."""

    texts: dict[str, str]
    """All of it as it was sent: what GetQueueAttributes gives back, word by word."""
    delay_seconds: int | UnsetType = UNSET
    maximum_message_size: int | UnsetType = UNSET
    message_retention_period: int | UnsetType = UNSET
    receive_message_wait_time_seconds: int | UnsetType = UNSET
    visibility_timeout: int | UnsetType = UNSET
    policy: str | UnsetType | None = UNSET
    redrive_policy: RedrivePolicy | UnsetType | None = UNSET
    redrive_allow_policy: RedriveAllowPolicy | UnsetType | None = UNSET
    fifo_queue: bool | UnsetType = UNSET
    content_based_deduplication: bool | UnsetType = UNSET
    deduplication_scope: str | UnsetType = UNSET
    fifo_throughput_limit: str | UnsetType = UNSET
    kms_master_key_id: str | UnsetType | None = UNSET
    kms_data_key_reuse_period_seconds: int | UnsetType = UNSET
    sqs_managed_sse_enabled: bool | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    lanes: int | UnsetType = UNSET
    priorities: int | UnsetType = UNSET
    fair: bool | UnsetType = UNSET
    min_partitions: int | UnsetType = UNSET
    max_partitions: int | UnsetType = UNSET
    limits: str | UnsetType = UNSET
    name_rests: bool | UnsetType = UNSET
    in_flight_limit: int | UnsetType = UNSET


class CreateQueue(Struct):
    queue_name: str
    attributes: QueueAttributes
    tags: dict[str, str]


class SetQueueAttributes(Struct):
    queue_url: str
    attributes: QueueAttributes
