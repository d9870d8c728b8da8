"""Receive: up to a batch of messages, each with its receipt; waits for them if asked to."""

from __future__ import annotations

from angelhair import limits
from angelhair.model import TIMELINE, Ask, Delivery, validate_name
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.polling import Patience
from angelhair.server.rest import query, shapes
from angelhair.server.rest.content import content_type_in, group_of, origin_of, text_or_bytes
from angelhair.server.rest.errors import invalid
from angelhair.server.rest.queues import NO_STORE
from angelhair.server.rest.times import rfc3339
from angelhair.server.service import Service

PARAMETERS = query.parameters(
    query.seconds(
        "wait", "Seconds to wait for a message when there is none; it comes as soon as there is one.",
        limits.WAIT_MAXIMUM_SECONDS, 20,
    ),
    query.VISIBILITY,
    query.Parameter(
        "consumer", "Of a timeline only: whose shards the messages come from; without it, those of this server.",
        query.NAME_SCHEMA, "mailer-1", validate_name,
    ),
)


async def receive(service: Service, request: Request, queue: str, batch: str) -> Response:
    given = query.read(request.query, PARAMETERS)
    if "consumer" in given:
        kind = (await service.engine.find_queue(request.account, queue)).settings.kind
        if kind != TIMELINE:
            raise invalid("consumer", f"a queue of the kind {kind!r} has no shards that consumers hold; leave it out")
    ask = Ask(query.BATCH.value(batch), given.get("visibility"), consumer=given.get("consumer"))
    # A client that leaves while it waits would take a message along that nobody sees until its visibility is over.
    wait_seconds = 0 if request.client_left else given.get("wait", 0) / 1000
    patience = Patience()
    request.on_leave = patience.end
    deliveries = await service.receive(request.account, queue, ask, wait_seconds, patience)
    return json_response(200, shapes.Received([_delivered(delivery) for delivery in deliveries]), NO_STORE)


def _delivered(delivery: Delivery) -> shapes.MessageDelivered:
    body, body_base64 = text_or_bytes(delivery.body)
    return shapes.MessageDelivered(
        id=str(delivery.id),
        receipt=delivery.receipt,
        body=body,
        body_base64=body_base64,
        content_type=content_type_in(delivery.attributes),
        deliveries=delivery.deliveries,
        enqueued_at=rfc3339(delivery.enqueued_at_ms),
        first_delivered_at=rfc3339(delivery.first_delivered_at_ms),
        visible_at=rfc3339(delivery.visible_at_ms),
        origin=origin_of(delivery.origin),
        group=group_of(delivery),
        priority=delivery.priority,
        due=None if delivery.due_ms is None else rfc3339(delivery.due_ms),
    )
