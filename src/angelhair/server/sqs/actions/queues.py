"""CreateQueue, DeleteQueue, GetQueueUrl, ListQueues, ListDeadLetterSourceQueues, PurgeQueue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import UNSET

from angelhair import limits
from angelhair.engine.catalog import Queue, Rewritten
from angelhair.errors import QueueExists, QueueNotFound
from angelhair.model import FIFO, QueueSettings
from angelhair.server.aws.arns import is_queue_name
from angelhair.server.aws.tokens import token_of, value_of
from angelhair.server.sqs.actions import kept
from angelhair.server.sqs.actions.attributes import check_dead_letters
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.checked import CreateQueue, QueueAttributes
from angelhair.server.sqs.checks.common import invalid_next_token
from angelhair.server.sqs.checks.databags import check_attributes_of
from angelhair.server.sqs.errors import (
    PurgeQueueInProgress,
    QueueDeletedRecently,
    QueueDoesNotExist,
    QueueNameExists,
)
from angelhair.server.sqs.inputs import (
    DeleteQueueRequest,
    GetQueueUrlRequest,
    ListDeadLetterSourceQueuesRequest,
    ListQueuesRequest,
    PurgeQueueRequest,
)
from angelhair.server.sqs.outputs import (
    CreateQueueResult,
    GetQueueUrlResult,
    ListDeadLetterSourceQueuesResult,
    ListQueuesResult,
    Nothing,
)


async def create_queue(call: Call, wanted: CreateQueue) -> CreateQueueResult:
    """One that exists is as good, if it has the attributes that were named; those that were not may be any."""
    name, attributes = wanted.queue_name, wanted.attributes
    call.request.queue = name
    try:
        existing = await call.service.engine.find_queue(call.account, name)
    except QueueNotFound:
        if await call.service.engine.name_rests(call.account, name):
            raise QueueDeletedRecently from None
        await check_dead_letters(call, name, attributes)
        notes = kept.noted({kept.TAGS: wanted.tags} if wanted.tags else {}, attributes)
        kind = _kind(attributes)
        settings = QueueSettings(**{**kind, **kept.changes_of(attributes)})
        check_attributes_of(settings, attributes)
        try:
            existing, made = await call.service.create_queue(call.account, name, settings, notes)
        except QueueExists:
            # Somebody was faster, and made it otherwise.
            existing, made = await call.named(name), False
        if made:
            return CreateQueueResult(call.url_of(name))
    _check_same(call, existing, attributes)
    return CreateQueueResult(call.url_of(name))


def _kind(attributes: QueueAttributes) -> dict[str, Any]:
    """Groups can be spread over lanes, for life, if a key needs to be known in its group only."""
    if attributes.fifo_queue is not True:
        return {} if attributes.kind is UNSET else {"kind": attributes.kind}
    return {"kind": FIFO, "lanes": limits.AWS_FIFO_LANES if attributes.deduplication_scope == "messageGroup" else 1}


def _check_same(call: Call, queue: Queue, attributes: QueueAttributes) -> None:
    for name, text in attributes.texts.items():
        has = kept.redrive_policy(queue, call.arn_of) if name == kept.REDRIVE else kept.attribute(queue, name)
        # What is a setting of the engine is said in its words: true, where somebody wrote True.
        if (has or "") != (text.lower() if name in kept.BEYOND else text):
            raise QueueNameExists(name)


async def delete_queue(call: Call, wanted: DeleteQueueRequest) -> Nothing:
    name = call.place(wanted.queue_url).name
    engine = call.service.engine
    # One that somebody began to delete is not found, and deleted all the same.
    with suppress(QueueNotFound):
        if kept.name_rests(await engine.find_queue(call.account, name)):
            await engine.let_name_rest(call.account, name, limits.AWS_NAME_REST_SECONDS)
    try:
        await call.service.delete_queue(call.account, name)
    except QueueNotFound:
        raise QueueDoesNotExist from None
    return Nothing()


async def get_queue_url(call: Call, wanted: GetQueueUrlRequest) -> GetQueueUrlResult:
    call.request.queue = wanted.queue_name
    if not is_queue_name(wanted.queue_name):
        raise QueueDoesNotExist
    await call.named(wanted.queue_name)
    return GetQueueUrlResult(call.url_of(wanted.queue_name))


async def list_queues(call: Call, wanted: ListQueuesRequest) -> ListQueuesResult:
    """A token is given only to who asked for pages: others get the first thousand, as at Amazon."""
    most = wanted.max_results or limits.AWS_LIST_MAXIMUM
    names, more = await call.service.engine.list_queues(
        call.account, wanted.queue_name_prefix, _after(wanted.next_token), most
    )
    token = _token(names) if more and wanted.max_results is not None else None
    # Other doors allow names that no queue of SQS can have, and that no URL of SQS leads to.
    return ListQueuesResult([call.url_of(name) for name in names if is_queue_name(name)], token)


async def list_dead_letter_source_queues(
    call: Call, wanted: ListDeadLetterSourceQueuesRequest
) -> ListDeadLetterSourceQueuesResult:
    queue = await call.queue(wanted.queue_url)
    most = wanted.max_results or limits.AWS_LIST_MAXIMUM
    names, more = await call.service.engine.list_dead_letter_sources(
        call.account, queue.name, _after(wanted.next_token), most
    )
    token = _token(names) if more and wanted.max_results is not None else None
    return ListDeadLetterSourceQueuesResult([call.url_of(name) for name in names if is_queue_name(name)], token)


async def purge_queue(call: Call, wanted: PurgeQueueRequest) -> Nothing:
    """Noted when it is done: a purge that was refused, or failed, keeps nobody from trying again."""
    queue = await call.queue(wanted.queue_url)
    now_ms = call.service.clock.now().wall_ms
    # As the catalog has it now: another server may have purged.
    call.service.engine.memory.distrust(queue.account, queue.name)
    found = await call.service.engine.find_queue(queue.account, queue.name)
    if abs(now_ms - found.notes.get(kept.PURGED_AT, 0)) < limits.AWS_PURGE_PAUSE_SECONDS * 1000:
        raise PurgeQueueInProgress(queue.name)
    await call.service.purge(queue.account, queue.name)

    def note(known: Queue) -> Rewritten:
        return Rewritten({}, {**known.notes, kept.PURGED_AT: now_ms})

    await call.service.rewrite_queue(queue.account, queue.name, note)
    return Nothing()


def _token(names: Sequence[str]) -> str | None:
    return token_of(names[-1]) if names else None


def _after(token: str | None) -> str | None:
    if token is None:
        return None
    name = value_of(token)
    if name is None:
        raise invalid_next_token()
    return name
