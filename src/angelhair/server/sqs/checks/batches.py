"""Batches. What is wrong with a batch refuses it; what is wrong with an entry fails that entry alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol as TypingProtocol

from angelhair import limits
from angelhair.server.aws.errors import AwsError
from angelhair.server.aws.patterns import ENTRY_ID
from angelhair.server.sqs.checked import (
    ChangeMessageVisibilityBatch,
    DeleteMessageBatch,
    OutgoingEntry,
    SendMessageBatch,
)
from angelhair.server.sqs.checks.common import need_queue
from angelhair.server.sqs.checks.messages import check_entry_for_fifo, check_entry_for_standard, outgoing
from angelhair.server.sqs.errors import (
    BatchEntryIdsNotDistinct,
    BatchRequestTooLong,
    EmptyBatchRequest,
    InvalidBatchEntryId,
    MissingParameter,
    TooManyEntriesInBatchRequest,
    invalid_value,
)
from angelhair.server.sqs.inputs import (
    ChangeMessageVisibilityBatchRequest,
    DeleteMessageBatchRequest,
    SendMessageBatchRequest,
    SendMessageBatchRequestEntry,
)
from angelhair.server.sqs.outputs import BatchResultErrorEntry

SEND_ENTRY = "SendMessageBatchRequestEntry"
DELETE_ENTRY = "DeleteMessageBatchRequestEntry"
CHANGE_ENTRY = "ChangeMessageVisibilityBatchRequestEntry"


class _Entry(TypingProtocol):
    @property
    def id(self) -> str: ...


def check_ids(entries: Sequence[_Entry], kind: str) -> None:
    if not entries:
        raise EmptyBatchRequest(kind)
    if len(entries) > limits.AWS_BATCH_ENTRIES:
        raise TooManyEntriesInBatchRequest(len(entries))
    seen = set()
    for entry in entries:
        if ENTRY_ID.fullmatch(entry.id) is None:
            raise InvalidBatchEntryId
        if entry.id in seen:
            raise BatchEntryIdsNotDistinct(entry.id)
        seen.add(entry.id)


def check_send_batch(request: SendMessageBatchRequest) -> SendMessageBatch:
    is_fifo = need_queue(request.queue_url).is_fifo
    check_ids(request.entries, SEND_ENTRY)
    beyond = _too_long(request.entries)
    entries, failed = [], []
    for number, entry in enumerate(request.entries, 1):
        if is_fifo:
            check_entry_for_fifo(entry)
        try:
            if not entry.message_body:
                raise MissingParameter(f"{SEND_ENTRY}.{number}.MessageBody")
            if not is_fifo:
                check_entry_for_standard(entry)
            entries.append(OutgoingEntry(entry.id, outgoing(entry, "SendMessageBatch")))
        except AwsError as error:
            failed.append(BatchResultErrorEntry.of(entry.id, error))
    return SendMessageBatch(request.queue_url, entries, failed, beyond)


def _too_long(entries: Sequence[SendMessageBatchRequestEntry]) -> AwsError | None:
    """All entries count, those that will fail too: the sum is about the request."""
    size_bytes = 0
    for entry in entries:
        body = entry.message_body
        size_bytes += len(body) if body.isascii() else len(body.encode())
        for name, value in entry.message_attributes.items():
            size_bytes += len(name.encode()) + len(value.data_type.encode())
            size_bytes += len((value.string_value or "").encode()) + len(value.binary_value or b"")
    return BatchRequestTooLong(size_bytes) if size_bytes > limits.AWS_MESSAGE_SIZE_MAXIMUM_BYTES else None


def check_delete_batch(request: DeleteMessageBatchRequest) -> DeleteMessageBatch:
    need_queue(request.queue_url)
    check_ids(request.entries, DELETE_ENTRY)
    entries, failed = [], []
    for number, entry in enumerate(request.entries, 1):
        if entry.receipt_handle:
            entries.append(entry)
        else:
            error = MissingParameter(f"{DELETE_ENTRY}.{number}.ReceiptHandle")
            failed.append(BatchResultErrorEntry.of(entry.id, error))
    return DeleteMessageBatch(request.queue_url, entries, failed)


def check_change_batch(request: ChangeMessageVisibilityBatchRequest) -> ChangeMessageVisibilityBatch:
    need_queue(request.queue_url)
    check_ids(request.entries, CHANGE_ENTRY)
    entries, failed = [], []
    for number, entry in enumerate(request.entries, 1):
        wanted = entry.visibility_timeout
        error: AwsError | None = None
        if not entry.receipt_handle:
            error = MissingParameter(f"{CHANGE_ENTRY}.{number}.ReceiptHandle")
        elif wanted is None:
            error = MissingParameter(f"{CHANGE_ENTRY}.{number}.VisibilityTimeout")
        elif not 0 <= wanted <= limits.AWS_VISIBILITY_MAXIMUM_SECONDS:
            reason = f"VisibilityTimeout must be an integer between 0 and {limits.AWS_VISIBILITY_MAXIMUM_SECONDS}."
            error = invalid_value(wanted, "VisibilityTimeout", reason)
        if error is None:
            entries.append(entry)
        else:
            failed.append(BatchResultErrorEntry.of(entry.id, error))
    return ChangeMessageVisibilityBatch(request.queue_url, entries, failed)
