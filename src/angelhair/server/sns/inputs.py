"""What each action takes, member by member, as it stands on the wire.

Whatever AWS requires has an empty default here: that it is missing is for `checks` to say, in AWS's words. In the order
of the model's actions; the names are the model's too.
"""

from __future__ import annotations

from angelhair.server.aws.shape import MessageAttributeValue, Shape
from angelhair.server.sns.outputs import Tag


class AddPermissionRequest(Shape):
    topic_arn: str = ""
    label: str = ""
    aws_account_id: list[str] = []
    action_name: list[str] = []


class ConfirmSubscriptionRequest(Shape):
    topic_arn: str = ""
    token: str = ""
    authenticate_on_unsubscribe: str | None = None


class CreateTopicRequest(Shape):
    name: str = ""
    attributes: dict[str, str] = {}
    tags: list[Tag] = []
    data_protection_policy: str | None = None


class DeleteTopicRequest(Shape):
    topic_arn: str = ""


class GetDataProtectionPolicyRequest(Shape):
    resource_arn: str = ""


class GetSubscriptionAttributesRequest(Shape):
    subscription_arn: str = ""


class GetTopicAttributesRequest(Shape):
    topic_arn: str = ""


class ListSubscriptionsRequest(Shape):
    next_token: str | None = None


class ListSubscriptionsByTopicRequest(Shape):
    topic_arn: str = ""
    next_token: str | None = None


class ListTagsForResourceRequest(Shape):
    resource_arn: str = ""


class ListTopicsRequest(Shape):
    next_token: str | None = None


class PublishRequest(Shape):
    topic_arn: str | None = None
    target_arn: str | None = None
    phone_number: str | None = None
    message: str = ""
    subject: str | None = None
    message_structure: str | None = None
    message_attributes: dict[str, MessageAttributeValue] = {}
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class PublishBatchRequestEntry(Shape):
    id: str = ""
    message: str = ""
    subject: str | None = None
    message_structure: str | None = None
    message_attributes: dict[str, MessageAttributeValue] = {}
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class PublishBatchRequest(Shape):
    topic_arn: str = ""
    publish_batch_request_entries: list[PublishBatchRequestEntry] = []


class PutDataProtectionPolicyRequest(Shape):
    resource_arn: str = ""
    data_protection_policy: str = ""


class RemovePermissionRequest(Shape):
    topic_arn: str = ""
    label: str = ""


class SetSubscriptionAttributesRequest(Shape):
    subscription_arn: str = ""
    attribute_name: str = ""
    attribute_value: str | None = None


class SetTopicAttributesRequest(Shape):
    topic_arn: str = ""
    attribute_name: str = ""
    attribute_value: str | None = None


class SubscribeRequest(Shape):
    topic_arn: str = ""
    protocol: str = ""
    endpoint: str | None = None
    attributes: dict[str, str] = {}
    return_subscription_arn: bool = False


class TagResourceRequest(Shape):
    resource_arn: str = ""
    tags: list[Tag] = []


class UnsubscribeRequest(Shape):
    subscription_arn: str = ""


class UntagResourceRequest(Shape):
    resource_arn: str = ""
    tag_keys: list[str] = []
