"""What each action gives. What is None is not said at all; lists and maps are said even when they are empty."""

from __future__ import annotations

from typing import ClassVar

from angelhair.server.aws.errors import AwsError, Protocol
from angelhair.server.aws.shape import Shape


class Nothing(Shape):
    """The action has nothing to say but that it was done."""


class Empty(Shape):
    """The same, between elements that SDKs look for."""

    wrapped: ClassVar[bool] = True


class Tag(Shape):
    key: str = ""
    value: str = ""


class ConfirmSubscriptionResult(Shape):
    subscription_arn: str


class CreateTopicResult(Shape):
    topic_arn: str


class GetDataProtectionPolicyResult(Shape):
    data_protection_policy: str | None = None


class GetSubscriptionAttributesResult(Shape):
    attributes: dict[str, str] = {}


class GetTopicAttributesResult(Shape):
    attributes: dict[str, str] = {}


class Subscription(Shape):
    subscription_arn: str
    owner: str
    protocol: str
    endpoint: str
    topic_arn: str


class ListSubscriptionsResult(Shape):
    subscriptions: list[Subscription] = []
    next_token: str | None = None


class ListTagsForResourceResult(Shape):
    tags: list[Tag] = []


class Topic(Shape):
    topic_arn: str


class ListTopicsResult(Shape):
    topics: list[Topic] = []
    next_token: str | None = None


class PublishResult(Shape):
    message_id: str
    sequence_number: str | None = None


class PublishBatchResultEntry(Shape):
    id: str
    message_id: str
    sequence_number: str | None = None


class BatchResultErrorEntry(Shape):
    id: str
    code: str
    message: str | None
    sender_fault: bool

    @classmethod
    def of(cls, entry_id: str, error: AwsError) -> BatchResultErrorEntry:
        return cls(entry_id, error.code, error.message_in(Protocol.QUERY) or None, error.sender_fault)


class PublishBatchResult(Shape):
    successful: list[PublishBatchResultEntry] = []
    failed: list[BatchResultErrorEntry] = []


class SubscribeResult(Shape):
    subscription_arn: str
