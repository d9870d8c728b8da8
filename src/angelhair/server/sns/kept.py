"""What a topic and a subscription of SNS have: settings of the engine, and notes.

A note is the text that was set, so that it is given back word by word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from angelhair import limits
from angelhair.engine.topics.filters import BY_ATTRIBUTES, BY_BODY
from angelhair.engine.topics.values import BY_GROUP, BY_TOPIC, NewSubscription, Subscription, Topic, TopicSettings
from angelhair.model import FIFO
from angelhair.server.sns.checks.attributes import SCOPES, check_filter, dead_letter_queue
from angelhair.server.sns.checks.delivery_policies import CONTENT_TYPE, DEFAULT, retry_policy

ATTRIBUTES, TAGS, PROTECTION = "sns", "tags", "data_protection"
"""Names among the notes."""

LEFT_BY_SIGNATURE = "left_by_signature"
"""Among the notes of a subscription that no link ends."""

CONTENT_DEDUP, SCOPE = "ContentBasedDeduplication", "FifoThroughputScope"
THROUGHPUT = {"Topic": BY_TOPIC, "MessageGroup": BY_GROUP}
"""Settings of the engine, by other words."""

_THROUGHPUT_SAID = {ours: theirs for theirs, ours in THROUGHPUT.items()}
_SCOPES_SAID = {ours: theirs for theirs, ours in SCOPES.items()}

POLICY_ACTIONS = (
    "GetTopicAttributes", "SetTopicAttributes", "AddPermission", "RemovePermission", "DeleteTopic", "Subscribe",
    "ListSubscriptionsByTopic", "Publish",
)


# --- topics -----------------------------------------------------------------------------------------------------------


def settings_of(attributes: Mapping[str, str], is_fifo: bool) -> TopicSettings:
    settings = TopicSettings(FIFO) if is_fifo else TopicSettings()
    return replace(settings, **changes_of(attributes))


def changes_of(attributes: Mapping[str, str]) -> dict[str, Any]:
    """The settings of the engine that these attributes are."""
    changes: dict[str, Any] = {}
    if CONTENT_DEDUP in attributes:
        changes["content_dedup"] = attributes[CONTENT_DEDUP] == "true"
    if SCOPE in attributes:
        changes["dedup_scope"] = THROUGHPUT[attributes[SCOPE]]
    return changes


def noted(notes: Mapping[str, Any], attributes: Mapping[str, str | None]) -> dict[str, Any]:
    """The notes once these attributes are set; what is None goes."""
    kept = {**notes.get(ATTRIBUTES, {}), **attributes, CONTENT_DEDUP: None, SCOPE: None}
    return {**notes, ATTRIBUTES: {name: text for name, text in kept.items() if text is not None}}


def attribute(topic: Topic, name: str) -> str | None:
    """One that can be set, as it is; None when it was not set."""
    if topic.settings.kind == FIFO:
        if name == CONTENT_DEDUP:
            return "true" if topic.settings.content_dedup else "false"
        if name == SCOPE:
            return _THROUGHPUT_SAID[topic.settings.dedup_scope]
    text: str | None = topic.notes.get(ATTRIBUTES, {}).get(name)
    return text


def maximum_message_bytes(topic: Topic) -> int:
    return int(attribute(topic, "MaximumMessageSize") or limits.SNS_MESSAGE_SIZE_DEFAULT_BYTES)


def tags(topic: Topic) -> Mapping[str, str]:
    found: Mapping[str, str] = topic.notes.get(TAGS, {})
    return found


def default_policy(arn: str, account: str) -> str:
    """What a topic says that has none: its own account may use it."""
    return json.dumps({
        "Version": "2008-10-17",
        "Id": "__default_policy_ID",
        "Statement": [{
            "Sid": "__default_statement_ID",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": [f"SNS:{action}" for action in POLICY_ACTIONS],
            "Resource": arn,
            "Condition": {"StringEquals": {"AWS:SourceOwner": account}},
        }],
    })


def effective_delivery_policy(topic: Topic) -> str:
    said = attribute(topic, "DeliveryPolicy")
    policy = {
        "http": {
            "defaultHealthyRetryPolicy": msgspec.to_builtins(retry_policy(None, said) if said else DEFAULT),
            "disableSubscriptionOverrides": False,
            "defaultRequestPolicy": {"headerContentType": CONTENT_TYPE},
        }
    }
    if said:
        others = json.loads(said).get("http", {})
        policy["http"] |= {name: value for name, value in others.items() if name != "defaultHealthyRetryPolicy"}
    return json.dumps(policy)


_FIELDS = {
    "RawMessageDelivery": "raw", "FilterPolicy": "filter_policy", "FilterPolicyScope": "filter_scope",
    "RedrivePolicy": "dead_letter_queue",
}
"""Attributes of subscriptions that the engine knows, by its words."""

# --- subscriptions ----------------------------------------------------------------------------------------------------


def subscription_with(
    known: NewSubscription, attributes: Mapping[str, str | None], topic_is_fifo: bool, at_subscribe: bool
) -> NewSubscription:
    """A subscription once these attributes, which are checked one by one, are set. Raises `InvalidParameter`."""
    changed = known
    if "RawMessageDelivery" in attributes:
        changed = replace(changed, raw=attributes["RawMessageDelivery"] == "true")
    if "FilterPolicyScope" in attributes:
        changed = replace(changed, filter_scope=SCOPES[attributes["FilterPolicyScope"] or "MessageAttributes"])
    if "FilterPolicy" in attributes:
        policy = attributes["FilterPolicy"]
        # An empty policy is how SNS is told that there is none.
        changed = replace(changed, filter_policy=None if policy is None or policy.strip() == "{}" else policy)
    check_filter(changed.filter_policy, changed.filter_scope, at_subscribe)
    if "RedrivePolicy" in attributes:
        changed = replace(changed, dead_letter_queue=dead_letter_queue(attributes["RedrivePolicy"], topic_is_fifo))
    kept = {
        name: text for name, text in attributes.items()
        if name not in ("RawMessageDelivery", "FilterPolicy", "FilterPolicyScope")
    }
    return replace(changed, notes=noted(changed.notes, kept)) if kept else changed


def has_other(known: Subscription, wanted: NewSubscription, attributes: Mapping[str, str | None]) -> bool:
    """Whether a subscription that is there differs in an attribute that was named."""
    had, has = (one.notes.get(ATTRIBUTES, {}) for one in (known, wanted))
    return any(
        getattr(known, _FIELDS[name]) != getattr(wanted, _FIELDS[name])
        if name in _FIELDS else had.get(name) != has.get(name)
        for name in attributes
    )


def subscription_attributes(subscription: Subscription) -> dict[str, str]:
    """Those that were set, and those that always have a value."""
    values: dict[str, str] = dict(subscription.notes.get(ATTRIBUTES, {}))
    values["RawMessageDelivery"] = "true" if subscription.raw else "false"
    if subscription.filter_policy is not None:
        values["FilterPolicy"] = subscription.filter_policy
        values["FilterPolicyScope"] = _SCOPES_SAID[subscription.filter_scope]
    elif subscription.filter_scope != BY_ATTRIBUTES:
        values["FilterPolicyScope"] = _SCOPES_SAID[BY_BODY]
    return values
