"""A message that is sent: its body, its delay, its ids."""

from __future__ import annotations

from angelhair import limits
from angelhair.server.aws.characters import is_xml_text
from angelhair.server.sqs.checked import OutgoingMessage, SendMessage
from angelhair.server.sqs.checks.common import NOT_FOR_THIS_TYPE, check_group_id, need_queue
from angelhair.server.sqs.checks.message_attributes import check_attributes, priority_in, trace_header_in
from angelhair.server.sqs.checksums import md5_of_attributes, md5_of_body
from angelhair.server.sqs.errors import (
    InvalidMessageContents,
    InvalidParameterValue,
    MissingParameter,
    invalid_value,
    message_too_long,
)
from angelhair.server.sqs.inputs import SendMessageBatchRequestEntry, SendMessageRequest


def check_send(request: SendMessageRequest) -> SendMessage:
    is_fifo = need_queue(request.queue_url).is_fifo
    if not request.message_body:
        raise MissingParameter("MessageBody")
    if is_fifo:
        check_for_fifo(request)
        if request.message_group_id is None:
            raise MissingParameter("MessageGroupId")
    elif request.message_deduplication_id is not None:
        raise invalid_value(request.message_deduplication_id, "MessageDeduplicationId", NOT_FOR_THIS_TYPE)
    message = outgoing(request, "SendMessage")
    if message.size_bytes > limits.AWS_MESSAGE_SIZE_MAXIMUM_BYTES:
        message.beyond = message.beyond or message_too_long(limits.AWS_MESSAGE_SIZE_MAXIMUM_BYTES)
    return SendMessage(request.queue_url, message)


def check_for_fifo(request: SendMessageRequest | SendMessageBatchRequestEntry) -> None:
    """A FIFO queue delays all its messages alike; zero means as long as the queue says."""
    if request.delay_seconds:
        raise invalid_value(request.delay_seconds, "DelaySeconds", NOT_FOR_THIS_TYPE)


def check_entry_for_fifo(entry: SendMessageBatchRequestEntry) -> None:
    """In a batch, AWS calls a missing group an invalid value, and refuses the whole batch for it."""
    check_for_fifo(entry)
    if entry.message_group_id is None:
        raise InvalidParameterValue("The request must contain the parameter MessageGroupId.")


def check_entry_for_standard(entry: SendMessageBatchRequestEntry) -> None:
    if entry.message_deduplication_id is not None:
        raise InvalidParameterValue(NOT_FOR_THIS_TYPE.removesuffix("."))


def outgoing(request: SendMessageRequest | SendMessageBatchRequestEntry, operation: str) -> OutgoingMessage:
    """What is true of a message whatever its queue, and whether alone or in a batch."""
    delay, beyond = request.delay_seconds, None
    if delay is not None and not 0 <= delay <= limits.AWS_DELAY_MAXIMUM_SECONDS:
        reason = f"DelaySeconds must be >= 0 and <= {limits.AWS_DELAY_MAXIMUM_SECONDS}."
        beyond = invalid_value(delay, "DelaySeconds", reason)
        if not 0 <= delay <= limits.DURATION_MAXIMUM_MS // 1000:
            raise beyond
    group_id, deduplication_id = request.message_group_id, request.message_deduplication_id
    if group_id is not None:
        check_group_id(group_id, "MessageGroupId")
    if deduplication_id is not None:
        check_group_id(deduplication_id, "MessageDeduplicationId")
    body = request.message_body.encode()
    size_bytes = len(body)
    if not is_xml_text(body):
        raise InvalidMessageContents
    md5_attributes = md5_system = trace_header = None
    priority = 0
    if request.message_attributes:
        size_bytes += check_attributes(request.message_attributes, operation)
        md5_attributes = md5_of_attributes(request.message_attributes)
        priority = priority_in(request.message_attributes)
    if request.message_system_attributes:
        trace_header = trace_header_in(request.message_system_attributes)
        md5_system = md5_of_attributes(request.message_system_attributes)
    return OutgoingMessage(
        body, size_bytes, md5_of_body(body), delay, group_id, deduplication_id,
        request.message_attributes, md5_attributes, trace_header, md5_system, priority, beyond,
    )
