"""What each action gives. What is None or empty is not said at all, as AWS does it, unless a client must find it."""

from __future__ import annotations

from msgspec import field

from angelhair.server.aws.errors import AwsError, Protocol
from angelhair.server.aws.shape import MessageAttributeValue, Shape


class Nothing(Shape):
    """The action has nothing to say but that it was done."""


# --- queues -----------------------------------------------------------------------------------------------------------


class CreateQueueResult(Shape):
    queue_url: str


class GetQueueUrlResult(Shape):
    queue_url: str


class ListQueuesResult(Shape):
    queue_urls: list[str] = []
    next_token: str | None = None


class ListDeadLetterSourceQueuesResult(Shape):
    """Its list is said even when it is empty: the model requires it."""

    queue_urls: list[str] = field(name="queueUrls")
    next_token: str | None = None


class GetQueueAttributesResult(Shape):
    attributes: dict[str, str] = {}


class ListQueueTagsResult(Shape):
    tags: dict[str, str] = {}


# --- messages ---------------------------------------------------------------------------------------------------------


class SendMessageResult(Shape):
    message_id: str
    md5_of_message_body: str
    md5_of_message_attributes: str | None = None
    md5_of_message_system_attributes: str | None = None
    sequence_number: str | None = None


class SendMessageBatchResultEntry(Shape):
    id: str
    message_id: str
    md5_of_message_body: str
    md5_of_message_attributes: str | None = None
    md5_of_message_system_attributes: str | None = None
    sequence_number: str | None = None


class BatchResultErrorEntry(Shape):
    id: str
    sender_fault: bool
    code: str
    message: str | None = None

    @classmethod
    def of(cls, entry_id: str, error: AwsError, protocol: Protocol = Protocol.JSON) -> BatchResultErrorEntry:
        return cls(entry_id, error.sender_fault, error.code, error.message_in(protocol) or None)


class SendMessageBatchResult(Shape):
    successful: list[SendMessageBatchResultEntry] = []
    failed: list[BatchResultErrorEntry] = []


class Message(Shape):
    """One delivery. `attributes` are the system's, by name; all their values are text."""

    message_id: str
    receipt_handle: str
    md5_of_body: str
    body: str
    attributes: dict[str, str] = {}
    md5_of_message_attributes: str | None = None
    message_attributes: dict[str, MessageAttributeValue] = {}


class ReceiveMessageResult(Shape):
    messages: list[Message] = []


class DeleteMessageBatchResultEntry(Shape):
    id: str


class DeleteMessageBatchResult(Shape):
    successful: list[DeleteMessageBatchResultEntry] = []
    failed: list[BatchResultErrorEntry] = []


class ChangeMessageVisibilityBatchResultEntry(Shape):
    id: str


class ChangeMessageVisibilityBatchResult(Shape):
    successful: list[ChangeMessageVisibilityBatchResultEntry] = []
    failed: list[BatchResultErrorEntry] = []


# --- moving messages --------------------------------------------------------------------------------------------------


class StartMessageMoveTaskResult(Shape):
    task_handle: str


class CancelMessageMoveTaskResult(Shape):
    approximate_number_of_messages_moved: int


class ListMessageMoveTasksResultEntry(Shape):
    """A handle is said of running tasks only."""

    status: str
    source_arn: str
    approximate_number_of_messages_moved: int
    started_timestamp: int
    task_handle: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    approximate_number_of_messages_to_move: int | None = None
    failure_reason: str | None = None


class ListMessageMoveTasksResult(Shape):
    results: list[ListMessageMoveTasksResultEntry] = []
