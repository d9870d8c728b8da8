"""Receiving, and what is done with a receipt afterwards."""

from __future__ import annotations

from angelhair import limits
from angelhair.server.sqs.checks.attributes import QUEUE_ATTRIBUTES
from angelhair.server.sqs.checks.common import NOT_FOR_THIS_TYPE, check_group_id, need_queue
from angelhair.server.sqs.errors import MissingParameter, invalid_value, unknown_attribute
from angelhair.server.sqs.inputs import ChangeMessageVisibilityRequest, DeleteMessageRequest, ReceiveMessageRequest

MESSAGE_SYSTEM_ATTRIBUTES = frozenset({
    "All", "SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp",
    "SequenceNumber", "MessageDeduplicationId", "MessageGroupId", "AWSTraceHeader", "DeadLetterQueueSourceArn",
})

PEEK = "Angelhair.Peek"
"""Not an attribute: named among them it asks to be shown messages, and to leave them where they are."""

# By the model, the old member takes names of queue attributes. No message has one, and asking does no harm.
_NAMED_BY_OLD_CLIENTS = MESSAGE_SYSTEM_ATTRIBUTES | QUEUE_ATTRIBUTES | {PEEK}


def check_receive(request: ReceiveMessageRequest) -> ReceiveMessageRequest:
    is_fifo = need_queue(request.queue_url).is_fifo
    most = request.max_number_of_messages
    if most is not None and not 1 <= most <= limits.AWS_BATCH_ENTRIES:
        reason = f"Must be between 1 and {limits.AWS_BATCH_ENTRIES}, if provided."
        raise invalid_value(most, "MaxNumberOfMessages", reason)
    _check_range(request.wait_time_seconds, "WaitTimeSeconds", limits.AWS_WAIT_MAXIMUM_SECONDS)
    _check_range(request.visibility_timeout, "VisibilityTimeout", limits.AWS_VISIBILITY_MAXIMUM_SECONDS)
    for name in request.attribute_names:
        if name not in _NAMED_BY_OLD_CLIENTS:
            raise unknown_attribute(name)
    for name in request.message_system_attribute_names:
        if name not in MESSAGE_SYSTEM_ATTRIBUTES and name != PEEK:
            raise unknown_attribute(name)
    attempt = request.receive_request_attempt_id
    if attempt is not None:
        if not is_fifo:
            raise invalid_value(attempt, "ReceiveRequestAttemptId", NOT_FOR_THIS_TYPE)
        check_group_id(attempt, "ReceiveRequestAttemptId")
    return request


def _check_range(value: int | None, parameter: str, most: int) -> None:
    if value is not None and not 0 <= value <= most:
        raise invalid_value(value, parameter, f"Must be >= 0 and <= {most}, if provided.")


def check_delete(request: DeleteMessageRequest) -> DeleteMessageRequest:
    need_queue(request.queue_url)
    if not request.receipt_handle:
        raise MissingParameter("ReceiptHandle")
    return request


def check_change(request: ChangeMessageVisibilityRequest) -> ChangeMessageVisibilityRequest:
    need_queue(request.queue_url)
    if not request.receipt_handle:
        raise MissingParameter("ReceiptHandle")
    if request.visibility_timeout is None:
        raise MissingParameter("VisibilityTimeout")
    if not 0 <= request.visibility_timeout <= limits.AWS_VISIBILITY_MAXIMUM_SECONDS:
        reason = f"Must be between 0 and {limits.AWS_VISIBILITY_MAXIMUM_SECONDS}."
        raise invalid_value(request.visibility_timeout, "VisibilityTimeout", reason)
    return request
