"""What a queue of SQS has: its attributes, part of them settings of the engine, the rest in the queue's notes.

A note is the text that was set, so that it is given back word by word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from angelhair import limits
from angelhair.engine.catalog import Queue
from angelhair.model import BY_GROUP, BY_QUEUE, FIFO, NOT_OF_KIND, QueueSettings
from angelhair.server import gate
from angelhair.server.sqs.checked import QueueAttributes, RedrivePolicy
from angelhair.server.sqs.checks.attributes import (
    IN_FLIGHT,
    KIND,
    LIMITS,
    MAX_PARTITIONS,
    MIN_PARTITIONS,
    NAME_RESTS,
    WIDE,
)
from angelhair.server.sqs.checks.policies import parse_redrive_allow_policy

ATTRIBUTES, POLICY, TAGS, PURGED_AT = "sqs", gate.POLICY, "tags", "purged_at_ms"
"""Names among a queue's notes; the policy lies among the attributes."""

IN_SETTINGS = {
    "DelaySeconds": "delay_ms",
    "VisibilityTimeout": "visibility_timeout_ms",
    "MessageRetentionPeriod": "retention_ms",
}
"""Attributes that are settings of the engine, in seconds here and in milliseconds there."""

BEYOND = {
    KIND: "kind", "Angelhair.Lanes": "lanes", "Angelhair.Priorities": "priorities", "Angelhair.Fair": "fair",
    MIN_PARTITIONS: "min_partitions", MAX_PARTITIONS: "max_partitions",
}
"""Settings of the engine that SQS has no word for."""

SCOPE = "DeduplicationScope"
SCOPES = {"queue": BY_QUEUE, "messageGroup": BY_GROUP}
"""A setting of the engine too, by other words."""

REDRIVE = "RedrivePolicy"

REMOVABLE = (POLICY, REDRIVE, "RedriveAllowPolicy", "KmsMasterKeyId")
"""Set to nothing, they are not there any more."""

DEFAULTS = {
    "MaximumMessageSize": str(limits.AWS_MESSAGE_SIZE_MAXIMUM_BYTES),
    "ReceiveMessageWaitTimeSeconds": "0",
    "SqsManagedSseEnabled": "true",
    LIMITS: "sqs",
    NAME_RESTS: "false",
    IN_FLIGHT: str(limits.AWS_IN_FLIGHT),
}
DEFAULTS_OF_FIFO = {"FifoQueue": "true", "ContentBasedDeduplication": "false", "FifoThroughputLimit": "perQueue"}


_ORDINARY = QueueSettings()
_SCOPES_SAID = {ours: theirs for theirs, ours in SCOPES.items()}


def changes_of(attributes: QueueAttributes) -> dict[str, Any]:
    """The settings of the engine that these attributes change."""
    texts = attributes.texts
    changes: dict[str, Any] = {
        setting: int(texts[name]) * 1000 for name, setting in IN_SETTINGS.items() if name in texts
    }
    beyond = {setting: getattr(attributes, setting) for setting in BEYOND.values()}
    changes |= {setting: value for setting, value in beyond.items() if value is not UNSET}
    if isinstance(attributes.deduplication_scope, str):
        changes["dedup_scope"] = SCOPES[attributes.deduplication_scope]
    policy = attributes.redrive_policy
    if policy is None:
        changes |= {"dead_letter_queue": None, "max_deliveries": None}
    elif isinstance(policy, RedrivePolicy):
        changes |= {"dead_letter_queue": policy.dead_letter_queue, "max_deliveries": policy.max_receive_count}
    return changes


def noted(notes: Mapping[str, Any], attributes: QueueAttributes) -> dict[str, Any]:
    """The notes of a queue once these attributes are set."""
    kept = dict(notes.get(ATTRIBUTES, {}))
    for name, text in attributes.texts.items():
        if name in IN_SETTINGS or name in BEYOND or name == SCOPE:
            continue
        if text or name not in REMOVABLE:
            kept[name] = text
        else:
            kept.pop(name, None)
    if attributes.kms_master_key_id not in (UNSET, None):
        kept["SqsManagedSseEnabled"] = "false"
    elif attributes.sqs_managed_sse_enabled is True:
        kept.pop("KmsMasterKeyId", None)
    return {**notes, ATTRIBUTES: kept}


def attribute(queue: Queue, name: str) -> str | None:
    """One that can be set, as it is; None when it is not there. The redrive policy is `redrive_policy`'s."""
    setting = IN_SETTINGS.get(name)
    if setting is not None:
        value_ms = getattr(queue.settings, setting)
        # Kept without end through another door. SQS has no word for that but its longest.
        return str(limits.AWS_RETENTION_MAXIMUM_SECONDS if value_ms is None else value_ms // 1000)
    if name in BEYOND:
        if BEYOND[name] in NOT_OF_KIND[queue.settings.kind]:
            return None
        return _said(getattr(queue.settings, BEYOND[name]))
    is_fifo = queue.settings.kind == FIFO
    if name == SCOPE:
        return _SCOPES_SAID[queue.settings.dedup_scope] if is_fifo else None
    default = DEFAULTS_OF_FIFO.get(name) if is_fifo else None
    text: str | None = queue.notes.get(ATTRIBUTES, {}).get(name, default or DEFAULTS.get(name))
    return text


def beyond_sqs(queue: Queue) -> dict[str, str]:
    """What it has that SQS does not know: those who did not ask for it are not told of it."""
    values = {
        name: _said(getattr(queue.settings, setting))
        for name, setting in BEYOND.items()
        if name != KIND and getattr(queue.settings, setting) != getattr(_ORDINARY, setting)
    }
    noted = {name: attribute(queue, name) for name in (LIMITS, NAME_RESTS, IN_FLIGHT)}
    return values | {name: text for name, text in noted.items() if text is not None and text != DEFAULTS[name]}


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_wide(queue: Queue) -> bool:
    """Whether it takes what SQS refuses as too long, too late or too large."""
    return attribute(queue, LIMITS) == WIDE


def name_rests(queue: Queue) -> bool:
    """Whether its name is to rest for a while when it is deleted, as at Amazon."""
    return (attribute(queue, NAME_RESTS) or "").lower() == "true"


def in_flight_limit(queue: Queue) -> int:
    """How many of its messages may be in flight; 0 when it does not matter."""
    return int(queue.notes.get(ATTRIBUTES, {}).get(IN_FLIGHT, limits.AWS_IN_FLIGHT))


def redrive_policy(queue: Queue, arn_of: Callable[[str], str]) -> str | None:
    """As it was set, unless another door has changed it since."""
    name, most = queue.settings.dead_letter_queue, queue.settings.max_deliveries
    if name is None or most is None:
        return None
    text = attribute(queue, REDRIVE)
    if text is not None:
        said = json.loads(text)
        count = said.get("maxReceiveCount", limits.AWS_RECEIVES_DEFAULT)
        if str(count) == str(most) and said["deadLetterTargetArn"].endswith(f":{name}"):
            return text
    return json.dumps({"deadLetterTargetArn": arn_of(name), "maxReceiveCount": most})


def maximum_message_bytes(queue: Queue) -> int:
    return int(attribute(queue, "MaximumMessageSize") or 0)


def dedups_by_content(queue: Queue) -> bool:
    return attribute(queue, "ContentBasedDeduplication") == "true"


def wait_seconds(queue: Queue) -> int:
    return int(attribute(queue, "ReceiveMessageWaitTimeSeconds") or 0)


def admits_dead_letters_of(queue: Queue, source_arn: str) -> bool:
    """Whether it lets itself be the dead-letter queue of that one."""
    text = queue.notes.get(ATTRIBUTES, {}).get("RedriveAllowPolicy")
    if text is None:
        return True
    policy = parse_redrive_allow_policy("RedriveAllowPolicy", text, False)
    if policy is None or policy.permission == "allowAll":
        return True
    return policy.permission == "byQueue" and source_arn in policy.source_queue_arns
