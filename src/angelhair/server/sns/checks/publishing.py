"""A message that is published: its body, or a body for each protocol, its attributes, its ids; alone and in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from angelhair import limits
from angelhair.engine.topics.values import HTTP, HTTPS, QUEUE
from angelhair.server.aws.arns import FIFO
from angelhair.server.aws.characters import is_xml_text
from angelhair.server.aws.errors import AwsError
from angelhair.server.aws.patterns import ATTRIBUTE_NAME, ATTRIBUTE_TYPE, ENTRY_ID, GROUP_ID, NUMBER, RESERVED
from angelhair.server.aws.policies import json_object
from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sns.checked import Outgoing, OutgoingEntry, Publish, PublishBatch
from angelhair.server.sns.checks.common import need_topic
from angelhair.server.sns.errors import (
    BatchEntryIdsNotDistinct,
    EmptyBatchRequest,
    InvalidBatchEntryId,
    InvalidParameter,
    ParameterValueInvalid,
    TooManyEntriesInBatchRequest,
    UnsupportedOperation,
)
from angelhair.server.sns.inputs import PublishBatchRequest, PublishBatchRequestEntry, PublishRequest
from angelhair.server.sns.outputs import BatchResultErrorEntry

_BODIES = {"sqs": QUEUE, "http": HTTP, "https": HTTPS}


def check_publish(request: PublishRequest) -> Publish:
    if request.phone_number is not None:
        raise UnsupportedOperation("Publish to a phone number")
    arn = request.topic_arn or request.target_arn
    if not arn:
        raise InvalidParameter("TopicArn or TargetArn", "no value for required parameter")
    if ":endpoint/" in arn or ":app/" in arn:
        raise UnsupportedOperation("Publish to a mobile endpoint")
    topic = need_topic(arn, "TopicArn" if request.topic_arn else "TargetArn")
    return Publish(topic, _outgoing(request, topic.name.endswith(FIFO)))


def check_publish_batch(request: PublishBatchRequest) -> PublishBatch:
    topic = need_topic(request.topic_arn)
    entries = request.publish_batch_request_entries
    _check_ids(entries)
    checked, failed = [], []
    for entry in entries:
        try:
            checked.append(OutgoingEntry(entry.id, _outgoing(entry, topic.name.endswith(FIFO))))
        except AwsError as error:
            failed.append(BatchResultErrorEntry.of(entry.id, error))
    return PublishBatch(topic, checked, failed)


def _check_ids(entries: Sequence[PublishBatchRequestEntry]) -> None:
    if not entries:
        raise EmptyBatchRequest
    if len(entries) > limits.AWS_BATCH_ENTRIES:
        raise TooManyEntriesInBatchRequest
    if any(ENTRY_ID.fullmatch(entry.id) is None for entry in entries):
        raise InvalidBatchEntryId
    if len({entry.id for entry in entries}) != len(entries):
        raise BatchEntryIdsNotDistinct


def _outgoing(request: PublishRequest | PublishBatchRequestEntry, is_fifo: bool) -> Outgoing:
    _check_ids_of_fifo(request, is_fifo)
    if not request.message:
        raise InvalidParameter("Empty message")
    if not is_xml_text(request.message.encode()):
        raise InvalidParameter("Message", "Invalid characters")
    structure = request.message_structure
    body, bodies = (request.message, {}) if structure is None else _structured(structure, request.message)
    size_bytes = len(request.message.encode()) + _checked_attributes(request.message_attributes)
    if request.subject is not None:
        _check_subject(request.subject)
    return Outgoing(
        body, bodies, size_bytes, request.subject, request.message_attributes, request.message_group_id,
        request.message_deduplication_id,
    )


def _check_ids_of_fifo(request: PublishRequest | PublishBatchRequestEntry, is_fifo: bool) -> None:
    group, deduplication = request.message_group_id, request.message_deduplication_id
    if is_fifo and group is None:
        raise InvalidParameter("The MessageGroupId parameter is required for FIFO topics")
    if not is_fifo and deduplication is not None:
        raise InvalidParameter(
            "MessageDeduplicationId",
            "The request includes MessageDeduplicationId parameter that is not valid for this topic type",
        )
    for name, value in (("MessageGroupId", group), ("MessageDeduplicationId", deduplication)):
        if value is not None and GROUP_ID.fullmatch(value) is None:
            raise InvalidParameter(
                name, f"{name} can only include alphanumeric and punctuation characters. "
                f"1 to {limits.AWS_GROUP_ID_LENGTH} in length",
            )


def _check_subject(subject: str) -> None:
    if not 1 <= len(subject) <= limits.SNS_SUBJECT_LENGTH:
        raise InvalidParameter("Subject")
    if not is_xml_text(subject.encode()) or any(character in subject for character in "\r\n\t"):
        raise InvalidParameter("Subject")


def _structured(structure: str, message: str) -> tuple[str, dict[str, str]]:
    """The body that is everybody's, and those that are meant for one protocol."""
    if structure != "json":
        raise InvalidParameter("MessageStructure")
    found = json_object(message)
    if found is None:
        raise InvalidParameter("Message Structure - JSON message body failed to parse")
    default = found.get("default")
    if not isinstance(default, str):
        raise InvalidParameter("Message Structure - No default entry in JSON message body")
    bodies = {}
    for protocol, ours in _BODIES.items():
        body = found.get(protocol)
        if isinstance(body, str):
            bodies[ours] = body
    if not all(is_xml_text(body.encode()) for body in (default, *bodies.values())):
        raise InvalidParameter("Message", "Invalid characters")
    return default, bodies


def _checked_attributes(attributes: Mapping[str, MessageAttributeValue]) -> int:
    """The bytes that they add to the message."""
    size_bytes = 0
    for name, value in attributes.items():
        _check_name(name)
        size_bytes += len(name) + len(value.data_type.encode()) + len(_checked_value(name, value))
    return size_bytes


def _check_name(name: str) -> None:
    if not name:
        raise ParameterValueInvalid("The message attribute name must not be empty.")
    if len(name.encode()) > limits.AWS_ATTRIBUTE_NAME_BYTES:
        raise ParameterValueInvalid("Length of message attribute name must be less than 256 bytes.")
    wrong = next((character for character in name if ATTRIBUTE_NAME.fullmatch(character) is None), None)
    if wrong is not None:
        raise ParameterValueInvalid(
            f"Invalid non-alphanumeric character '#x{ord(wrong):X}' was found in the message attribute name. "
            "Can only include alphanumeric characters, hyphens, underscores, or dots."
        )
    if name.lower().startswith(RESERVED) or name[0] == "." or name[-1] == "." or ".." in name:
        raise ParameterValueInvalid(f"Invalid message attribute name '{name}'.")


def _checked_value(name: str, value: MessageAttributeValue) -> bytes:
    """The value, encoded."""
    data_type = value.data_type
    if not data_type:
        raise ParameterValueInvalid(f"The message attribute '{name}' must contain non-empty message attribute type.")
    found = ATTRIBUTE_TYPE.fullmatch(data_type)
    type_bytes = data_type.encode()
    if found is None or len(type_bytes) > limits.AWS_ATTRIBUTE_TYPE_BYTES or not is_xml_text(type_bytes):
        raise ParameterValueInvalid(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type "
            "prefixes is Binary, Number, and String."
        )
    is_binary = found[1] == "Binary"
    if (value.string_value if is_binary else value.binary_value) is not None:
        field = "BinaryValue" if is_binary else "StringValue"
        raise ParameterValueInvalid(f"The message attribute '{name}' with type '{data_type}' must use field '{field}'.")
    encoded = (value.binary_value or b"") if is_binary else (value.string_value or "").encode()
    if not encoded:
        raise ParameterValueInvalid(
            f"The message attribute '{name}' must contain non-empty message attribute value for message attribute "
            f"type '{data_type}'."
        )
    if found[1] == "Number" and NUMBER.fullmatch(value.string_value or "") is None:
        raise ParameterValueInvalid(f"Could not cast message attribute '{name}' value to number.")
    if not is_binary and not is_xml_text(encoded):
        raise ParameterValueInvalid(f"The message attribute '{name}' contains an invalid character.")
    return encoded
