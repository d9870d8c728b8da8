"""Queue attributes: which there are, who may set them, and what each of them may be.

`SETTABLE` is the table. A value arrives as text and is parsed once, here, into its field of `QueueAttributes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import UNSET

from angelhair import limits
from angelhair.model import BUCKETED, DATABAG, FIFO, TIMELINE
from angelhair.server.sqs.checked import QueueAttributes
from angelhair.server.sqs.checks.policies import parse_policy, parse_redrive_allow_policy, parse_redrive_policy
from angelhair.server.sqs.errors import (
    InvalidAttributeName,
    InvalidAttributeValue,
    unknown_attribute,
    wrong_attribute_value,
)

_WHOLE = re.compile(r"[0-9]{1,10}", re.ASCII)

READ_ONLY = (
    "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
    "CreatedTimestamp", "LastModifiedTimestamp", "QueueArn",
)
ALL = "All"

Parser = Callable[[str, str, bool], object]
"""Takes the attribute's name, its text and whether the queue is a FIFO queue."""


def _wrong(name: str, wanted: str) -> InvalidAttributeValue:
    """Amazon does not say what would do. Of attributes that it does not have there is no other page to read."""
    return wrong_attribute_value(name, f"Must be {wanted}." if name in BEYOND else "")


def _whole(least: int, most: int) -> Parser:
    def parse(name: str, text: str, _is_fifo: bool) -> int:
        if _WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
            raise _wrong(name, f"between {least} and {most}")
        return int(text)

    return parse


def _choice(*choices: str) -> Parser:
    def parse(name: str, text: str, _is_fifo: bool) -> str:
        if text not in choices:
            raise _wrong(name, " or ".join(choices))
        return text

    return parse


def _truth(name: str, text: str, _is_fifo: bool) -> bool:
    if text.lower() not in ("true", "false"):
        raise _wrong(name, "true or false")
    return text.lower() == "true"


def _text(_name: str, text: str, _is_fifo: bool) -> str | None:
    return text or None


class Settable(NamedTuple):
    field: str
    parse: Parser


SETTABLE = {
    "DelaySeconds": Settable("delay_seconds", _whole(0, limits.AWS_DELAY_MAXIMUM_SECONDS)),
    "MaximumMessageSize": Settable(
        "maximum_message_size",
        _whole(limits.AWS_MESSAGE_SIZE_MINIMUM_BYTES, limits.AWS_MESSAGE_SIZE_MAXIMUM_BYTES),
    ),
    "MessageRetentionPeriod": Settable(
        "message_retention_period",
        _whole(limits.AWS_RETENTION_MINIMUM_SECONDS, limits.AWS_RETENTION_MAXIMUM_SECONDS),
    ),
    "ReceiveMessageWaitTimeSeconds": Settable(
        "receive_message_wait_time_seconds", _whole(0, limits.AWS_WAIT_MAXIMUM_SECONDS)
    ),
    "VisibilityTimeout": Settable("visibility_timeout", _whole(0, limits.AWS_VISIBILITY_MAXIMUM_SECONDS)),
    "Policy": Settable("policy", parse_policy),
    "RedrivePolicy": Settable("redrive_policy", parse_redrive_policy),
    "RedriveAllowPolicy": Settable("redrive_allow_policy", parse_redrive_allow_policy),
    "FifoQueue": Settable("fifo_queue", _truth),
    "ContentBasedDeduplication": Settable("content_based_deduplication", _truth),
    "DeduplicationScope": Settable("deduplication_scope", _choice("messageGroup", "queue")),
    "FifoThroughputLimit": Settable("fifo_throughput_limit", _choice("perQueue", "perMessageGroupId")),
    "KmsMasterKeyId": Settable("kms_master_key_id", _text),
    "KmsDataKeyReusePeriodSeconds": Settable(
        "kms_data_key_reuse_period_seconds",
        _whole(limits.AWS_KEY_REUSE_MINIMUM_SECONDS, limits.AWS_KEY_REUSE_MAXIMUM_SECONDS),
    ),
    "SqsManagedSseEnabled": Settable("sqs_managed_sse_enabled", _truth),
}

KIND, LIMITS, WIDE = "Angelhair.Kind", "Angelhair.Limits", "wide"
NAME_RESTS, IN_FLIGHT = "Angelhair.NameRests", "Angelhair.InFlightLimit"
MIN_PARTITIONS, MAX_PARTITIONS = "Angelhair.MinPartitions", "Angelhair.MaxPartitions"

BEYOND = {
    KIND: Settable("kind", _choice(BUCKETED, FIFO, TIMELINE, DATABAG)),
    "Angelhair.Lanes": Settable("lanes", _whole(1, limits.LANES_MAXIMUM)),
    "Angelhair.Priorities": Settable("priorities", _whole(1, limits.PRIORITIES_MAXIMUM)),
    "Angelhair.Fair": Settable("fair", _truth),
    MIN_PARTITIONS: Settable("min_partitions", _whole(1, limits.BAG_SLICES)),
    MAX_PARTITIONS: Settable("max_partitions", _whole(1, limits.BAG_SLICES)),
    LIMITS: Settable("limits", _choice("sqs", WIDE)),
    NAME_RESTS: Settable("name_rests", _truth),
    IN_FLIGHT: Settable("in_flight_limit", _whole(0, limits.AWS_IN_FLIGHT_MAXIMUM)),
}
"""What SQS does not have. Clients pass it on as it is."""

_LONGEST = limits.DURATION_MAXIMUM_MS // 1000
_WIDER = {
    "DelaySeconds": _whole(0, _LONGEST),
    "MessageRetentionPeriod": _whole(1, _LONGEST),
    "MaximumMessageSize": _whole(limits.AWS_MESSAGE_SIZE_MINIMUM_BYTES, limits.BODY_BYTES),
}
"""Of a queue with wide limits."""

QUEUE_ATTRIBUTES = frozenset({ALL, *READ_ONLY, *SETTABLE, *BEYOND})
"""What GetQueueAttributes may be asked for."""

_UNKNOWN_TO_STANDARD = ("FifoQueue", "ContentBasedDeduplication")
_ONLY_WITH_FIFO = ("FifoThroughputLimit", "DeduplicationScope")
_NOT_WITH_FIFO = ("Angelhair.Lanes", "Angelhair.Priorities", "Angelhair.Fair")


def parse_attributes(texts: Mapping[str, str], is_fifo: bool) -> QueueAttributes:
    """All attributes that are to be set, each in its own type. What only SQS itself sets is unknown here."""
    attributes = QueueAttributes(dict(texts))
    is_wide = texts.get(LIMITS) == WIDE
    for name, text in texts.items():
        settable = SETTABLE.get(name) or BEYOND.get(name)
        if settable is None or (not is_fifo and name in _UNKNOWN_TO_STANDARD):
            raise unknown_attribute(name)
        if not is_fifo and name in _ONLY_WITH_FIFO:
            raise InvalidAttributeName(f"You can specify the {name} only when FifoQueue is set to true.")
        if is_fifo and name in _NOT_WITH_FIFO:
            raise InvalidAttributeName(f"You can specify the {name} only for a standard queue.")
        parse = _WIDER.get(name, settable.parse) if is_wide else settable.parse
        setattr(attributes, settable.field, parse(name, text, is_fifo))
    _check_together(attributes, is_fifo)
    return attributes


def _check_together(attributes: QueueAttributes, is_fifo: bool) -> None:
    """What cannot be set at the same time. What the queue has already is the action's to compare."""
    if attributes.kind is not UNSET and (attributes.kind == FIFO) != is_fifo:
        raise wrong_attribute_value(KIND, "A queue whose name ends with .fifo is of the kind fifo, and no other is.")
    if attributes.sqs_managed_sse_enabled is True and isinstance(attributes.kms_master_key_id, str):
        raise two_encryptions()
    scope = attributes.deduplication_scope
    if attributes.fifo_throughput_limit == "perMessageGroupId" and scope is not UNSET and scope != "messageGroup":
        raise throughput_without_scope()


def two_encryptions() -> InvalidAttributeName:
    return InvalidAttributeName(
        "You can use one type of server-side encryption (SSE) at one time. "
        "You can either enable KMS SSE or SQS SSE."
    )


def throughput_without_scope() -> InvalidAttributeValue:
    return InvalidAttributeValue(
        "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup."
    )


def changed_type() -> InvalidAttributeValue:
    return wrong_attribute_value("FifoQueue", "Modifying queue type is not supported.")


def check_attribute_names(names: list[str]) -> None:
    for name in names:
        if name not in QUEUE_ATTRIBUTES:
            raise unknown_attribute(name)
