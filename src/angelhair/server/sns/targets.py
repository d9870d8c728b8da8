"""Which topic a request is about, before anything is done with it: what the gate has to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from angelhair.engine.topics.values import QUEUE, queue_of
from angelhair.server.aws.arns import queue_arn
from angelhair.server.sns.checked import CreateTopic, OfSubscription, Subscribe
from angelhair.server.sns.checks.attributes import REDRIVE, dead_letter_arn
from angelhair.server.sns.inputs import SetSubscriptionAttributesRequest


class Target(NamedTuple):
    owner: str | None
    """The account that was named; None when the caller's own is meant."""
    name: str | None
    """The topic; None when it is about all of them."""
    region: str | None = None
    """Where the topic is, to whoever named it."""
    also: tuple[str, ...] = ()
    """Queues that the topic would send to."""
    circumstances: Mapping[str, str] = {}
    """What conditions of the topic's policy may be about."""

    @property
    def names(self) -> tuple[str | None, ...]:
        return (self.name, *self.also)


def target_of(wanted: Any) -> Target:
    """Of a checked input."""
    match wanted:
        case CreateTopic():
            return Target(None, wanted.name)
        case Subscribe():
            return _subscribed(wanted)
        case OfSubscription():
            address, asked = wanted.subscription, wanted.wanted
            is_redrive = isinstance(asked, SetSubscriptionAttributesRequest) and asked.attribute_name == REDRIVE
            also = _dead_letters(asked.attribute_value) if is_redrive else ()
            return Target(address.account, address.topic, address.region, also)
    topic = getattr(wanted, "topic", None)
    return Target(None, None) if topic is None else Target(topic.account, topic.name, topic.region)


def _subscribed(wanted: Subscribe) -> Target:
    topic, also = wanted.topic, _dead_letters(wanted.attributes.get(REDRIVE))
    circumstances = {"sns:endpoint": wanted.endpoint, "sns:protocol": wanted.protocol}
    if wanted.protocol == QUEUE:
        account, name = queue_of(wanted.endpoint)
        circumstances = {"sns:endpoint": queue_arn(topic.region, account, name), "sns:protocol": "sqs"}
        also = (name, *also)
    return Target(topic.account, topic.name, topic.region, also, circumstances)


def _dead_letters(policy: str | None) -> tuple[str, ...]:
    """What does not decode is for the action to refuse."""
    arn = dead_letter_arn(policy)
    return () if arn is None else (arn.name,)
