"""TagQueue, UntagQueue, ListQueueTags."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from angelhair import limits
from angelhair.engine.catalog import Queue, Rewritten
from angelhair.server.sqs.actions import kept
from angelhair.server.sqs.actions.call import Call
from angelhair.server.sqs.errors import InvalidParameterValue
from angelhair.server.sqs.inputs import ListQueueTagsRequest, TagQueueRequest, UntagQueueRequest
from angelhair.server.sqs.outputs import ListQueueTagsResult, Nothing

Tags = Mapping[str, str]


async def tag_queue(call: Call, wanted: TagQueueRequest) -> Nothing:
    return await _retag(call, wanted.queue_url, lambda tags: {**tags, **wanted.tags})


async def untag_queue(call: Call, wanted: UntagQueueRequest) -> Nothing:
    gone = set(wanted.tag_keys)
    return await _retag(call, wanted.queue_url, lambda tags: {key: tags[key] for key in tags if key not in gone})


async def list_queue_tags(call: Call, wanted: ListQueueTagsRequest) -> ListQueueTagsResult:
    return ListQueueTagsResult(dict(_tags(await call.queue(wanted.queue_url))))


async def _retag(call: Call, url: str, change: Callable[[Tags], Tags]) -> Nothing:
    queue = await call.queue(url)

    def rewrite(found: Queue) -> Rewritten:
        tags = change(_tags(found))
        if len(tags) > limits.AWS_TAGS:
            raise InvalidParameterValue(f"Too many tags added for queue {queue.name}.")
        return Rewritten({}, {**found.notes, kept.TAGS: dict(tags)})

    await call.service.rewrite_queue(queue.account, queue.name, rewrite)
    return Nothing()


def _tags(queue: Queue) -> Tags:
    tags: Tags = queue.notes.get(kept.TAGS, {})
    return tags
