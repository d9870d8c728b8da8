"""What the checks make of a request where they know more than the wire said."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sns.addresses import SubscriptionAddress, TopicAddress
from angelhair.server.sns.outputs import BatchResultErrorEntry

Wanted = TypeVar("Wanted")


class OfTopic(Struct, Generic[Wanted]):
    """A request about one topic."""

    topic: TopicAddress
    wanted: Wanted


class OfSubscription(Struct, Generic[Wanted]):
    """A request about one subscription."""

    subscription: SubscriptionAddress
    wanted: Wanted


class CreateTopic(Struct):
    name: str
    is_fifo: bool
    attributes: dict[str, str]
    tags: dict[str, str]
    data_protection_policy: str | None


class Outgoing(Struct):
    """A message that may be published, as far as can be said without looking at its topic."""

    body: str
    bodies: dict[str, str]
    """By the protocol that it takes the place of `body` for."""
    size_bytes: int
    subject: str | None
    attributes: dict[str, MessageAttributeValue]
    group_id: str | None
    deduplication_id: str | None


class Publish(Struct):
    topic: TopicAddress
    message: Outgoing


class OutgoingEntry(Struct):
    id: str
    message: Outgoing


class PublishBatch(Struct):
    """The entries that stood their checks, and the failures of the others, which belong into the answer."""

    topic: TopicAddress
    entries: list[OutgoingEntry]
    failed: list[BatchResultErrorEntry]


class Subscribe(Struct):
    topic: TopicAddress
    protocol: str
    """In the engine's words."""
    endpoint: str
    attributes: dict[str, str]
    return_arn: bool
