"""Which topic a request is about, before anything is done with it: what the gate has to know."""

from __future__ import annotations

from typing import Any, NamedTuple

from angelhair.server.sns.checked import CreateTopic, OfSubscription


class Target(NamedTuple):
    owner: str | None
    """The account that was named; None when the caller's own is meant."""
    name: str | None
    """The topic; None when it is about all of them."""
    region: str | None = None
    """Where the topic is, to whoever named it."""


def target_of(wanted: Any) -> Target:
    """Of a checked input."""
    match wanted:
        case CreateTopic():
            return Target(None, wanted.name)
        case OfSubscription():
            return Target(wanted.subscription.account, wanted.subscription.topic, wanted.subscription.region)
    topic = getattr(wanted, "topic", None)
    return Target(None, None) if topic is None else Target(topic.account, topic.name, topic.region)
