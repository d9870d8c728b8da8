"""What a databag does not do, and what only a databag has, in the words of SQS."""

from __future__ import annotations

from msgspec import UNSET

from angelhair.model import DATABAG, QueueSettings
from angelhair.server.sqs.checked import OutgoingMessage, QueueAttributes, RedrivePolicy
from angelhair.server.sqs.checks.attributes import MAX_PARTITIONS, MIN_PARTITIONS
from angelhair.server.sqs.checks.common import NOT_FOR_THIS_TYPE
from angelhair.server.sqs.errors import (
    InvalidAttributeName,
    UnsupportedOperation,
    invalid_value,
    wrong_attribute_value,
)

_NOT_OF_DATABAGS = ("Angelhair.Lanes", "Angelhair.Priorities", "Angelhair.Fair")


def check_attributes_of(settings: QueueSettings, attributes: QueueAttributes) -> None:
    """`settings`: of the queue as it is, or as a new one would be with these attributes."""
    texts = attributes.texts
    if settings.kind != DATABAG:
        for name in (MIN_PARTITIONS, MAX_PARTITIONS):
            if name in texts:
                raise InvalidAttributeName(f"You can specify the {name} only for a databag.")
        return
    for name in _NOT_OF_DATABAGS:
        if name in texts:
            raise InvalidAttributeName(f"You cannot specify the {name} for a databag.")
    if attributes.delay_seconds is not UNSET and attributes.delay_seconds:
        raise wrong_attribute_value("DelaySeconds", "A databag has no delay: what is sent may be received at once.")
    if isinstance(attributes.redrive_policy, RedrivePolicy):
        raise wrong_attribute_value("RedrivePolicy", "A databag does not count receives, and has no dead letters.")
    least = settings.min_partitions if attributes.min_partitions is UNSET else attributes.min_partitions
    most = settings.max_partitions if attributes.max_partitions is UNSET else attributes.max_partitions
    if least > most:
        name = MIN_PARTITIONS if MIN_PARTITIONS in texts else MAX_PARTITIONS
        raise wrong_attribute_value(name, f"The least, {least}, is more than the most, {most}. Set both.")


def check_message_of_databag(message: OutgoingMessage) -> None:
    """A delay of nothing is none."""
    if message.delay_seconds:
        raise invalid_value(message.delay_seconds, "DelaySeconds", NOT_FOR_THIS_TYPE)
    if message.group_id is not None:
        raise invalid_value(message.group_id, "MessageGroupId", NOT_FOR_THIS_TYPE)


def unchangeable_visibility() -> UnsupportedOperation:
    return UnsupportedOperation(
        "The queue is a databag, which hides partitions and not messages: the visibility of a message cannot be "
        "changed. It comes again when the VisibilityTimeout of its receive is over."
    )
