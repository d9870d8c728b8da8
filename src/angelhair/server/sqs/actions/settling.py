"""DeleteMessage, ChangeMessageVisibility, and both of them in batches."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair import limits
from angelhair.engine import receipts
from angelhair.engine.catalog import Queue
from angelhair.engine.timeline import receipts as timeline_receipts
from angelhair.errors import AngelhairError, InvalidReceipt, MessageGone, StaleReceipt
from angelhair.model import DATABAG, FIFO, TIMELINE, WantedChange
from angelhair.server.aws.errors import AwsError
from angelhair.server.sqs.actions import handles
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.actions.handles import Handle
from angelhair.server.sqs.checked import ChangeMessageVisibilityBatch, DeleteMessageBatch
from angelhair.server.sqs.checks.databags import unchangeable_visibility
from angelhair.server.sqs.errors import ReceiptHandleIsInvalid, expired_receipt, invalid_value
from angelhair.server.sqs.faults import as_sqs_error
from angelhair.server.sqs.inputs import ChangeMessageVisibilityRequest, DeleteMessageRequest
from angelhair.server.sqs.outputs import (
    BatchResultErrorEntry,
    ChangeMessageVisibilityBatchResult,
    ChangeMessageVisibilityBatchResultEntry,
    DeleteMessageBatchResult,
    DeleteMessageBatchResultEntry,
    Nothing,
)

Verdict = AwsError | None


async def delete_message(call: Call, wanted: DeleteMessageRequest) -> Nothing:
    (verdict,) = await _delete(call, wanted.queue_url, [wanted.receipt_handle])
    if verdict is not None:
        raise verdict
    return Nothing()


async def delete_message_batch(call: Call, wanted: DeleteMessageBatch) -> DeleteMessageBatchResult:
    verdicts = await _delete(call, wanted.queue_url, [entry.receipt_handle for entry in wanted.entries])
    ids = [entry.id for entry in wanted.entries]
    return DeleteMessageBatchResult(
        [DeleteMessageBatchResultEntry(entry_id) for entry_id in _done(ids, verdicts)],
        [*wanted.failed, *_failed(call, ids, verdicts)],
    )


async def change_message_visibility(call: Call, wanted: ChangeMessageVisibilityRequest) -> Nothing:
    (verdict,) = await _hide(call, wanted.queue_url, [(wanted.receipt_handle, wanted.visibility_timeout or 0)])
    if verdict is not None:
        raise verdict
    return Nothing()


async def change_message_visibility_batch(
    call: Call, wanted: ChangeMessageVisibilityBatch
) -> ChangeMessageVisibilityBatchResult:
    wishes = [(entry.receipt_handle, entry.visibility_timeout or 0) for entry in wanted.entries]
    verdicts = await _hide(call, wanted.queue_url, wishes)
    ids = [entry.id for entry in wanted.entries]
    return ChangeMessageVisibilityBatchResult(
        [ChangeMessageVisibilityBatchResultEntry(entry_id) for entry_id in _done(ids, verdicts)],
        [*wanted.failed, *_failed(call, ids, verdicts)],
    )


async def _delete(call: Call, url: str, texts: Sequence[str]) -> list[Verdict]:
    queue = await call.queue(url)
    verdicts, good = _decoded(texts)
    if good:
        wanted = [handle.receipt for _, handle in good]
        is_fifo = queue.settings.kind == FIFO
        outcomes = await call.service.ack(queue.account, queue.name, wanted, in_flight=is_fifo)
        for (index, _), outcome in zip(good, outcomes, strict=True):
            # To SQS a message that is gone is deleted, and one that was received again since is somebody else's now: a
            # standard queue answers both with success. In a FIFO queue whoever comes late has to know.
            if isinstance(outcome, MessageGone | None) or (isinstance(outcome, StaleReceipt) and not is_fifo):
                continue
            late = isinstance(outcome, StaleReceipt)
            verdicts[index] = expired_receipt(texts[index]) if late else as_sqs_error(outcome, texts[index])
    return verdicts


async def _hide(call: Call, url: str, wishes: Sequence[tuple[str, int]]) -> list[Verdict]:
    queue = await call.queue(url)
    if queue.settings.kind == DATABAG:
        raise unchangeable_visibility()
    verdicts, good = _decoded([text for text, _ in wishes])
    now_seconds = call.service.clock.now().wall_ms // 1000
    changes: list[WantedChange] = []
    changing: list[int] = []
    for index, handle in good:
        seconds = wishes[index][1]
        if _is_too_long(handle, seconds, now_seconds):
            ours = _is_ours(queue, handle)
            verdicts[index] = _too_long(seconds) if ours else ReceiptHandleIsInvalid(wishes[index][0])
            continue
        changes.append(WantedChange(handle.receipt, seconds * 1000, in_flight=True))
        changing.append(index)
    if changes:
        outcomes: Sequence[AngelhairError | None] = await call.service.change(queue.account, queue.name, changes)
        for index, outcome in zip(changing, outcomes, strict=True):
            if outcome is not None:
                verdicts[index] = as_sqs_error(outcome, wishes[index][0])
    return verdicts


def _decoded(texts: Sequence[str]) -> tuple[list[Verdict], list[tuple[int, Handle]]]:
    verdicts: list[Verdict] = [None] * len(texts)
    good = []
    for index, text in enumerate(texts):
        try:
            good.append((index, handles.decode(text)))
        except AwsError as error:
            verdicts[index] = error
    return verdicts, good


def _is_too_long(handle: Handle, seconds: int, now_seconds: int) -> bool:
    if handle.received_at_seconds is None:
        return False
    return now_seconds + seconds > handle.received_at_seconds + limits.AWS_VISIBILITY_MAXIMUM_SECONDS


def _is_ours(queue: Queue, handle: Handle) -> bool:
    try:
        if queue.settings.kind == TIMELINE:
            timeline_receipts.decode(queue.incarnation, queue.secret, handle.receipt)
        else:
            receipts.decode(queue.incarnation, queue.secret, handle.receipt)
    except InvalidReceipt:
        return False
    return True


def _too_long(seconds: int) -> AwsError:
    most = limits.AWS_VISIBILITY_MAXIMUM_SECONDS
    reason = f"Total VisibilityTimeout for the message is beyond the limit [{most} seconds]"
    return invalid_value(seconds, "VisibilityTimeout", reason)


def _done(ids: Sequence[str], verdicts: Sequence[Verdict]) -> list[str]:
    return [entry_id for entry_id, verdict in zip(ids, verdicts, strict=True) if verdict is None]


def _failed(call: Call, ids: Sequence[str], verdicts: Sequence[Verdict]) -> list[BatchResultErrorEntry]:
    return [
        BatchResultErrorEntry.of(entry_id, verdict, call.protocol)
        for entry_id, verdict in zip(ids, verdicts, strict=True)
        if verdict is not None
    ]
