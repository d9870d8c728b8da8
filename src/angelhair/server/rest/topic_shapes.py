"""What of topics this door takes and gives, beside `shapes`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from angelhair import limits
from angelhair.server.rest.patterns import NAME_PATTERN
from angelhair.server.rest.shapes import Count, Name, Shape, Time

TopicName = Annotated[str, Meta(pattern=NAME_PATTERN, min_length=1, max_length=limits.TOPIC_NAME_LENGTH)]
PublicationId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]

SETTINGS = {
    "kind": "`fifo` where the name ends with `.fifo`, and nowhere else: each queue gets the messages of a group in "
            "their order. Fixed for life.",
    "content_dedup": "Of a fifo topic: a message without a key has the hash of its body for one.",
    "dedup_scope": "Of a fifo topic: where a key is one message, in all of it or in its group.",
}


class NewTopic(Shape):
    """A new topic's settings; all have defaults."""

    meanings = SETTINGS

    kind: Literal["standard", "fifo"] | UnsetType = UNSET
    content_dedup: bool | UnsetType = UNSET
    dedup_scope: Literal["topic", "group"] | UnsetType = UNSET


class TopicSaid(Shape, kw_only=True):
    """A topic."""

    meanings = SETTINGS

    name: TopicName
    kind: Literal["standard", "fifo"]
    content_dedup: bool
    dedup_scope: Literal["topic", "group"]
    created_at: Time
    changed_at: Time


class TopicShown(TopicSaid, kw_only=True):
    """A topic and who is subscribed. `queues`: of this account; `others`: how many other subscriptions there are."""

    queues: list[Name]
    others: Count


class TopicList(Shape):
    """Names in order. `next` goes into `after` for the page that follows; null when this was the last."""

    topics: list[TopicName]
    next: TopicName | None


class Subscribed(Shape):
    """The queue gets what is published from now on."""

    topic: TopicName
    queue: Name


class Published(Shape):
    """The message will reach every queue that was subscribed."""

    id: PublicationId
    topic: TopicName
