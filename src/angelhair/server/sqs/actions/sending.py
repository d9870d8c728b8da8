"""SendMessage, SendMessageBatch."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple, TypeVar

from angelhair.engine.catalog import Queue
from angelhair.engine.engine import PutOutcome
from angelhair.model import DATABAG, FIFO, MessageId, NewMessage
from angelhair.server.aws.carried import as_uuid, id_of_place, sequence_number
from angelhair.server.aws.errors import AwsError
from angelhair.server.sqs.actions import carried, kept
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.checked import OutgoingMessage, SendMessage, SendMessageBatch
from angelhair.server.sqs.checks.beyond import held_to_sqs
from angelhair.server.sqs.checks.databags import check_message_of_databag
from angelhair.server.sqs.errors import InvalidParameterValue, message_too_long
from angelhair.server.sqs.faults import as_sqs_error
from angelhair.server.sqs.outputs import (
    BatchResultErrorEntry,
    SendMessageBatchResult,
    SendMessageBatchResultEntry,
    SendMessageResult,
)

W = TypeVar("W")


class Sending(NamedTuple):
    """A message on its way, and the id that its sender is told; a FIFO queue has the last word on that."""

    message: NewMessage
    id: str


async def send_message(call: Call, wanted: SendMessage) -> SendMessageResult:
    queue = await call.queue(wanted.queue_url)
    message = _within_limits(queue, wanted).message
    sending = _prepared(call, queue, message)
    (outcome,) = await _put(call, queue, [sending])
    if not isinstance(outcome, MessageId):
        raise outcome
    message_id, sequence_number = _told(queue, sending, outcome)
    return SendMessageResult(
        message_id, message.md5_of_body, message.md5_of_attributes, message.md5_of_system_attributes, sequence_number
    )


async def send_message_batch(call: Call, wanted: SendMessageBatch) -> SendMessageBatchResult:
    queue = await call.queue(wanted.queue_url)
    wanted = _within_limits(queue, wanted)
    failed = list(wanted.failed)
    sending = []
    for entry in wanted.entries:
        try:
            sending.append((entry, _prepared(call, queue, entry.message, in_batch=True)))
        except AwsError as error:
            failed.append(BatchResultErrorEntry.of(entry.id, error, call.protocol))
    outcomes = await _put(call, queue, [each for _, each in sending])
    successful = []
    for (entry, each), outcome in zip(sending, outcomes, strict=True):
        message = entry.message
        if isinstance(outcome, MessageId):
            message_id, sequence_number = _told(queue, each, outcome)
            successful.append(
                SendMessageBatchResultEntry(
                    entry.id, message_id, message.md5_of_body, message.md5_of_attributes,
                    message.md5_of_system_attributes, sequence_number,
                )
            )
        else:
            failed.append(BatchResultErrorEntry.of(entry.id, as_sqs_error(outcome), call.protocol))
    return SendMessageBatchResult(successful, failed)


def _within_limits(queue: Queue, wanted: W) -> W:
    return wanted if kept.is_wide(queue) else held_to_sqs(wanted)


def _prepared(call: Call, queue: Queue, message: OutgoingMessage, in_batch: bool = False) -> Sending:
    most = kept.maximum_message_bytes(queue)
    if message.size_bytes > most:
        raise message_too_long(most, in_batch)
    if message.priority >= queue.settings.priorities and message.priority:
        count = queue.settings.priorities
        has = f"{count} priorities, from 0 to {count - 1}" if count > 1 else "no priorities"
        raise InvalidParameterValue(f"The queue has {has}; {message.priority} is none of them.")
    if queue.settings.kind == DATABAG:
        check_message_of_databag(message)
    if queue.settings.kind == FIFO:
        key = _deduplication_id(queue, message)
        text = carried.pack(message, "", call.caller.id, key, queue.incarnation)
        return Sending(NewMessage(message.body, text, key=key, group=message.group_id), "")
    message_id = as_uuid(call.service.engine.identities.fresh())
    delay_ms = None if message.delay_seconds is None else message.delay_seconds * 1000
    text = carried.pack(message, message_id, call.caller.id)
    put = NewMessage(message.body, text, delay_ms, group=message.group_id, priority=message.priority)
    return Sending(put, message_id)


def _deduplication_id(queue: Queue, message: OutgoingMessage) -> str:
    if message.deduplication_id is not None:
        return message.deduplication_id
    if not kept.dedups_by_content(queue):
        raise InvalidParameterValue(
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided "
            "explicitly"
        )
    return sha256(message.body).hexdigest()


async def _put(call: Call, queue: Queue, sending: Sequence[Sending]) -> list[PutOutcome]:
    if not sending:
        return []
    return await call.service.put(queue.account, queue.name, [each.message for each in sending])


def _told(queue: Queue, sending: Sending, outcome: MessageId) -> tuple[str, str | None]:
    """The id of the message, and its number in a FIFO queue: of the first one, if this was sent before."""
    if queue.settings.kind != FIFO:
        return sending.id, None
    return id_of_place(queue.account, queue.name, outcome, queue.incarnation), sequence_number(outcome)
