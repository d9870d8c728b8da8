"""Topics: list, make, show, delete them; subscribe queues; publish."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from angelhair import limits
from angelhair.engine.topics.values import (
    QUEUE,
    STANDARD,
    NewSubscription,
    Publication,
    Published,
    Topic,
    TopicSettings,
    queue_endpoint,
    queue_of,
)
from angelhair.errors import SubscriptionNotFound
from angelhair.model import FIFO, FIFO_ENDING, validate_name
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, topic_shapes
from angelhair.server.rest.content import check_size, content_type_of
from angelhair.server.rest.decoding import decode_object
from angelhair.server.rest.errors import invalid
from angelhair.server.rest.queues import NO_CONTENT, NO_STORE
from angelhair.server.rest.times import rfc3339
from angelhair.server.service import Service

LIST = query.parameters(
    query.part_of_name("prefix", "Only names that begin with this.", "ne", limits.TOPIC_NAME_LENGTH),
    query.part_of_name("after", "Only names after this one: `next` of the page before.", "a", limits.TOPIC_NAME_LENGTH),
    query.whole("limit", "At most so many names.", 1, limits.LIST_TOPICS, 100),
)
PARAMETERS = query.parameters(
    query.Parameter(
        "key", "An idempotency key: within five minutes, publications with the same key are one.",
        {"type": "string", "minLength": 1, "maxLength": limits.KEY_LENGTH}, "order-4711",
    ),
    query.Parameter(
        "group", "Of a fifo topic, which needs one: messages of a group reach each queue in order.",
        {"type": "string", "minLength": 1, "maxLength": limits.GROUP_LENGTH}, "customer-17",
    ),
)

_new_decoder = msgspec.json.Decoder(topic_shapes.NewTopic)


async def list_topics(service: Service, request: Request) -> Response:
    given = query.read(request.query, LIST)
    names, more = await service.topics.verbs.list(
        request.account, given.get("prefix", ""), given.get("after"), given.get("limit", limits.LIST_TOPICS)
    )
    return json_response(200, topic_shapes.TopicList(names, names[-1] if more else None), NO_STORE)


async def make_topic(service: Service, request: Request, topic: str) -> Response:
    query.read(request.query, query.NONE)
    wanted = decode_object(request, _new_decoder) if request.body else topic_shapes.NewTopic()
    given = {name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name)) is not UNSET}
    kind = FIFO if topic.endswith(FIFO_ENDING) else STANDARD
    if wanted.kind not in (UNSET, kind):
        raise invalid("kind", f"a topic whose name ends with {FIFO_ENDING} is of the kind {FIFO!r}, and no other is")
    made, is_new = await service.topics.verbs.create(request.account, topic, TopicSettings(**{**given, "kind": kind}))
    return json_response(201 if is_new else 200, topic_shapes.TopicSaid(**_fields(made)))


async def show_topic(service: Service, request: Request, topic: str) -> Response:
    query.read(request.query, query.NONE)
    found, (_, subscriptions) = await service.topics.verbs.read(request.account, topic)
    endpoints = [queue_of(one.endpoint) for one in subscriptions if one.protocol == QUEUE]
    queues = sorted(name for account, name in endpoints if account == request.account)
    shown = topic_shapes.TopicShown(**_fields(found), queues=queues, others=len(subscriptions) - len(queues))
    return json_response(200, shown, NO_STORE)


async def delete_topic(service: Service, request: Request, topic: str) -> Response:
    query.read(request.query, query.NONE)
    await service.topics.verbs.delete(request.account, topic)
    return NO_CONTENT


async def subscribe(service: Service, request: Request, topic: str, queue: str) -> Response:
    query.read(request.query, query.NONE)
    wanted = NewSubscription(QUEUE, queue_endpoint(request.account, validate_name("queue", queue)))
    _, is_new = await service.topics.subscribe(request.account, topic, wanted)
    return json_response(201 if is_new else 200, topic_shapes.Subscribed(topic, queue))


async def unsubscribe(service: Service, request: Request, topic: str, queue: str) -> Response:
    query.read(request.query, query.NONE)
    account, verbs = request.account, service.topics.verbs
    endpoint = queue_endpoint(account, validate_name("queue", queue))
    for one in await verbs.subscriptions(account, topic):
        if (one.protocol, one.endpoint) == (QUEUE, endpoint) and await verbs.unsubscribe(account, topic, one.id):
            return NO_CONTENT
    raise SubscriptionNotFound(topic, queue)


async def publish(service: Service, request: Request, topic: str) -> Response:
    given = query.read(request.query, PARAMETERS)
    body = check_size(request.body, most=limits.PUBLICATION_BYTES)
    publication = Publication(body, content_type_of(request), given.get("group"), given.get("key"))
    (outcome,) = await service.topics.publish(request.account, topic, [publication])
    if not isinstance(outcome, Published):
        raise outcome
    return json_response(201, topic_shapes.Published(outcome.id, topic))


def _fields(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "kind": topic.settings.kind,
        "content_dedup": topic.settings.content_dedup,
        "dedup_scope": topic.settings.dedup_scope,
        "created_at": rfc3339(topic.created_at_ms),
        "changed_at": rfc3339(topic.changed_at_ms),
    }
