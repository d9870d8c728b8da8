"""What each action takes, member by member, as it stands on the wire of both protocols.

Whatever AWS requires has an empty default here: that it is missing is for `checks` to say, in AWS's words. In the
order of the model; the names are the model's too.
"""

from __future__ import annotations

from msgspec import field

from angelhair.server.aws.shape import MessageAttributeValue, Shape

# --- queues -----------------------------------------------------------------------------------------------------------


class CreateQueueRequest(Shape):
    queue_name: str = ""
    attributes: dict[str, str] = {}
    tags: dict[str, str] = field(default_factory=dict, name="tags")


class DeleteQueueRequest(Shape):
    queue_url: str = ""


class GetQueueUrlRequest(Shape):
    queue_name: str = ""
    queue_owner_aws_account_id: str | None = None


class ListQueuesRequest(Shape):
    queue_name_prefix: str = ""
    next_token: str | None = None
    max_results: int | None = None


class ListDeadLetterSourceQueuesRequest(Shape):
    queue_url: str = ""
    next_token: str | None = None
    max_results: int | None = None


class GetQueueAttributesRequest(Shape):
    queue_url: str = ""
    attribute_names: list[str] = []


class SetQueueAttributesRequest(Shape):
    queue_url: str = ""
    attributes: dict[str, str] = {}


class PurgeQueueRequest(Shape):
    queue_url: str = ""


class AddPermissionRequest(Shape):
    queue_url: str = ""
    label: str = ""
    aws_account_ids: list[str] = []
    actions: list[str] = []


class RemovePermissionRequest(Shape):
    queue_url: str = ""
    label: str = ""


class TagQueueRequest(Shape):
    queue_url: str = ""
    tags: dict[str, str] = {}


class UntagQueueRequest(Shape):
    queue_url: str = ""
    tag_keys: list[str] = []


class ListQueueTagsRequest(Shape):
    queue_url: str = ""


# --- messages ---------------------------------------------------------------------------------------------------------


class SendMessageRequest(Shape):
    queue_url: str = ""
    message_body: str = ""
    delay_seconds: int | None = None
    message_attributes: dict[str, MessageAttributeValue] = {}
    message_system_attributes: dict[str, MessageAttributeValue] = {}
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageBatchRequestEntry(Shape):
    id: str = ""
    message_body: str = ""
    delay_seconds: int | None = None
    message_attributes: dict[str, MessageAttributeValue] = {}
    message_system_attributes: dict[str, MessageAttributeValue] = {}
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageBatchRequest(Shape):
    queue_url: str = ""
    entries: list[SendMessageBatchRequestEntry] = []


class ReceiveMessageRequest(Shape):
    queue_url: str = ""
    attribute_names: list[str] = []
    message_system_attribute_names: list[str] = []
    message_attribute_names: list[str] = []
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None

    @property
    def wanted_system_attributes(self) -> list[str]:
        """From the member of today and from the one that it replaced: clients use either."""
        return self.message_system_attribute_names + self.attribute_names


class DeleteMessageRequest(Shape):
    queue_url: str = ""
    receipt_handle: str = ""


class DeleteMessageBatchRequestEntry(Shape):
    id: str = ""
    receipt_handle: str = ""


class DeleteMessageBatchRequest(Shape):
    queue_url: str = ""
    entries: list[DeleteMessageBatchRequestEntry] = []


class ChangeMessageVisibilityRequest(Shape):
    queue_url: str = ""
    receipt_handle: str = ""
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatchRequestEntry(Shape):
    id: str = ""
    receipt_handle: str = ""
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatchRequest(Shape):
    queue_url: str = ""
    entries: list[ChangeMessageVisibilityBatchRequestEntry] = []


# --- moving messages --------------------------------------------------------------------------------------------------


class StartMessageMoveTaskRequest(Shape):
    source_arn: str = ""
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class CancelMessageMoveTaskRequest(Shape):
    task_handle: str = ""


class ListMessageMoveTasksRequest(Shape):
    source_arn: str = ""
    max_results: int | None = None
