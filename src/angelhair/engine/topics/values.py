"""Topics, subscriptions, and what is published: the values that doors, engine and fan-out share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from angelhair import limits
from angelhair.errors import InvalidRequest
from angelhair.model import FIFO, MessageId, NewMessage, validate_message, validate_name

STANDARD = "standard"
"""The other kind of topic, beside `FIFO`."""

BY_TOPIC, BY_GROUP = "topic", "group"
"""Among which publications of a fifo topic a key is one publication: all of them, or those of its group."""

QUEUE, HTTP, HTTPS = "queue", "http", "https"
"""Protocols: where a subscription's messages go."""

ATTRIBUTES, BODY = "attributes", "body"
"""What a filter policy looks at."""

PENDING, CONFIRMED = "pending", "confirmed"


@dataclass(frozen=True, slots=True)
class TopicSettings:
    kind: str = STANDARD
    content_dedup: bool = False
    """Of a fifo topic: a publication without a key has the hash of its body for one."""
    dedup_scope: str = BY_TOPIC

    def validated(self) -> TopicSettings:
        if self.kind not in (STANDARD, FIFO):
            raise InvalidRequest("kind", f"{self.kind!r} is not a kind of topic; there are 'standard' and 'fifo'")
        if not isinstance(self.content_dedup, bool):
            raise InvalidRequest("content_dedup", f"must be true or false, not {self.content_dedup!r}")
        if self.dedup_scope not in (BY_TOPIC, BY_GROUP):
            raise InvalidRequest("dedup_scope", f"must be 'topic' or 'group', not {self.dedup_scope!r}")
        return self

    def changed(self, changes: Mapping[str, Any]) -> TopicSettings:
        known = {setting.name for setting in fields(self)}
        for name in changes:
            if name not in known:
                raise InvalidRequest(name, "is not a setting of a topic")
        if changes.get("kind", self.kind) != self.kind:
            raise InvalidRequest("kind", "cannot change after the topic was created")
        return replace(self, **changes).validated()


@dataclass(frozen=True, slots=True)
class Topic:
    account: str
    name: str
    incarnation: str
    settings: TopicSettings
    notes: Mapping[str, Any]
    """What doors keep with a topic, such as its display name, tags and policy. The engine reads none of it."""
    version: int
    created_at_ms: int
    changed_at_ms: int


class TopicRewritten(NamedTuple):
    """What is to become of a topic: settings that change, and all of its notes."""

    changes: Mapping[str, Any]
    notes: Mapping[str, Any]


TopicRewrite = Callable[[Topic], TopicRewritten]
"""Made anew from the topic as it is, when somebody else changed it meanwhile."""


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """What a subscriber asks for. `endpoint`: of a queue `account/name` (`queue_endpoint`), else a URL."""

    protocol: str
    endpoint: str
    raw: bool = True
    """The body as it was published; else in an envelope that the door which made the subscription knows."""
    filter_policy: str | None = None
    filter_scope: str = ATTRIBUTES
    dead_letter_queue: str | None = None
    """A queue of the topic's account, for what cannot be delivered."""
    status: str = CONFIRMED
    """Nothing is sent to a subscription that is pending, until somebody knows its token."""
    notes: Mapping[str, Any] = field(default_factory=dict)

    def validated(self) -> NewSubscription:
        if self.protocol not in (QUEUE, HTTP, HTTPS):
            raise InvalidRequest("protocol", f"must be 'queue', 'http' or 'https', not {self.protocol!r}")
        if not 1 <= len(self.endpoint) <= limits.ENDPOINT_LENGTH:
            raise InvalidRequest("endpoint", f"must have 1 to {limits.ENDPOINT_LENGTH} characters")
        if self.protocol == QUEUE:
            account, name = queue_of(self.endpoint)
            validate_name("account", account)
            validate_name("queue", name)
        if self.filter_scope not in (ATTRIBUTES, BODY):
            raise InvalidRequest("filter_scope", f"must be 'attributes' or 'body', not {self.filter_scope!r}")
        if self.dead_letter_queue is not None:
            validate_name("dead_letter_queue", self.dead_letter_queue)
        if self.status not in (PENDING, CONFIRMED):
            raise InvalidRequest("status", f"must be 'pending' or 'confirmed', not {self.status!r}")
        size = len(json.dumps([self.notes, self.filter_policy]))
        if size > limits.SUBSCRIPTION_BYTES:
            raise InvalidRequest("notes", f"have {size} bytes; the limit is {limits.SUBSCRIPTION_BYTES}")
        return self


@dataclass(frozen=True, slots=True)
class Subscription(NewSubscription):
    """As it is kept. `version` grows with every change."""

    id: str = ""
    topic: str = ""
    """The topic's incarnation."""
    token: str = ""
    """Whoever shows it confirms the subscription."""
    version: int = 1
    created_at_ms: int = 0


SubscriptionRewrite = Callable[[Subscription], Subscription]
"""By `dataclasses.replace`; what names the subscription (id, protocol, endpoint) must stay."""


def queue_endpoint(account: str, name: str) -> str:
    return f"{account}/{name}"


def queue_of(endpoint: str) -> tuple[str, str]:
    """The account and the name of the queue that an endpoint names."""
    account, _, name = endpoint.partition("/")
    return account, name


def shown(endpoint: str) -> str:
    """As it may stand in a log: the URL of an endpoint may have secrets in its path and query, and a password."""
    return re.sub(r"^(\w+://)(?:[^/?#]*@)?([^/?#]*).*$", r"\1\2", endpoint, flags=re.DOTALL)


class Publication(NamedTuple):
    """What a publisher hands in."""

    body: bytes
    attributes: str | None = None
    """As `NewMessage.attributes`: what a queue that asks for the raw message is given."""
    group: str | None = None
    """A fifo topic needs one; a standard topic passes it on."""
    key: str | None = None
    """Publications with the same key within five minutes are one. A fifo topic needs one, or goes by the content."""
    subject: str | None = None
    bodies: Mapping[str, str] = {}
    """By protocol, a body in place of the common one."""
    values: Mapping[str, Any] = {}
    """The attributes as filter policies see them. They are not kept: filters are asked at publication."""
    id: str | None = None
    """The id that the publisher will be told; None makes one. One with a key gets another, made of its place."""
    notes: Mapping[str, str] = {}
    """What the publisher's door wants to find again when it renders the publication. The engine reads none of it."""


class Published(NamedTuple):
    """A publication that is confirmed: it will reach every queue that was subscribed."""

    id: str
    """32 hexadecimal digits."""
    place: MessageId | None = None
    """Of a fifo topic: numbers grow in the order of publication."""


class Target(NamedTuple):
    """A subscription as it was at publication: as much of it as delivering takes."""

    subscription: str
    protocol: str
    endpoint: str
    raw: bool
    dead_letter_queue: str | None


class Posting(NamedTuple):
    """A publication on its way."""

    id: str
    account: str
    topic: str
    kind: str
    published_at_ms: int
    body: bytes
    attributes: str | None
    group: str | None
    key: str | None
    subject: str | None
    bodies: Mapping[str, str]
    place: MessageId | None
    """As `Published.place`."""
    notes: Mapping[str, str]


class Rendered(NamedTuple):
    """What is put into a queue for a target."""

    body: bytes
    attributes: str | None


Render = Callable[[Posting, Target], Rendered]
"""Pure, and never fails."""


def as_published(posting: Posting, target: Target) -> Rendered:
    """What a raw subscription gets, and any where no door knows better."""
    body = posting.bodies.get(target.protocol)
    return Rendered(posting.body if body is None else body.encode(), posting.attributes)


def validate_publication(publication: Publication) -> None:
    validate_message(
        NewMessage(publication.body, publication.attributes, key=publication.key, group=publication.group)
    )
    size = len(publication.body) + sum(len(body.encode()) for body in publication.bodies.values())
    if size > limits.PUBLICATION_BYTES:
        raise InvalidRequest("body", f"has {size} bytes; the limit is {limits.PUBLICATION_BYTES}")


def validate_notes(notes: Mapping[str, Any]) -> None:
    size = len(json.dumps(notes)) if notes else 0
    if size > limits.NOTES_BYTES:
        raise InvalidRequest("notes", f"have {size} bytes; the limit is {limits.NOTES_BYTES}")
