"""TagResource, UntagResource, ListTagsForResource."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from angelhair import limits
from angelhair.engine.topics.values import Topic, TopicRewritten
from angelhair.errors import TopicNotFound
from angelhair.server.sns import kept
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.checked import OfTopic
from angelhair.server.sns.errors import ResourceNotFound, TagLimitExceeded
from angelhair.server.sns.outputs import Empty, ListTagsForResourceResult, Tag

Tags = Mapping[str, str]


async def tag_resource(call: Call, wanted: OfTopic[dict[str, str]]) -> Empty:
    return await _retag(call, wanted.topic.name, lambda tags: {**tags, **wanted.wanted})


async def untag_resource(call: Call, wanted: OfTopic[list[str]]) -> Empty:
    gone = set(wanted.wanted)
    return await _retag(call, wanted.topic.name, lambda tags: {key: tags[key] for key in tags if key not in gone})


async def list_tags_for_resource(call: Call, wanted: OfTopic[None]) -> ListTagsForResourceResult:
    try:
        topic = await call.topic(wanted.topic)
    except TopicNotFound:
        raise ResourceNotFound from None
    return ListTagsForResourceResult([Tag(key, value) for key, value in kept.tags(topic).items()])


async def _retag(call: Call, name: str, change: Callable[[Tags], Tags]) -> Empty:
    def rewrite(topic: Topic) -> TopicRewritten:
        tags = change(kept.tags(topic))
        if len(tags) > limits.AWS_TAGS:
            raise TagLimitExceeded
        return TopicRewritten({}, {**topic.notes, kept.TAGS: dict(tags)})

    try:
        await call.service.topics.rewrite(call.account, name, rewrite)
    except TopicNotFound:
        raise ResourceNotFound from None
    return Empty()
