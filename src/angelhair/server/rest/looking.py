"""Looking without taking: messages that wait, the marks of a queue, its buckets."""

from __future__ import annotations

from angelhair import limits
from angelhair.model import Peeked
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, shapes
from angelhair.server.rest.content import content_type_in, group_of, origin_of, text_or_bytes
from angelhair.server.rest.queues import NO_STORE
from angelhair.server.rest.times import rfc3339
from angelhair.server.service import Service

BUCKETS = query.parameters(
    query.whole("lane", "Which lane; by default the first.", 0, limits.LANE_NUMBER_MAXIMUM, 0),
    query.whole("first", "From this bucket on; by default the first that is kept.", 0, limits.INTEGER_LIMIT - 1, 0),
    query.whole("count", "At most so many buckets.", 1, limits.STATS_BUCKETS, limits.STATS_BUCKETS),
)


async def peek(service: Service, request: Request, queue: str, batch: str) -> Response:
    query.read(request.query, query.NONE)
    peeked = await service.engine.peek(request.account, queue, query.BATCH.value(batch))
    return json_response(200, shapes.Seen([seen(message) for message in peeked]), NO_STORE)


async def show_pointers(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    lanes = [
        shapes.LanePointers(
            lane, marks.next_id, marks.reader, marks.final, marks.settled, marks.repair, marks.floor, marks.dropped,
            marks.purged, marks.archived,
        )
        for lane, marks in sorted((await service.engine.marks(request.account, queue)).items())
    ]
    return json_response(200, shapes.Pointers(lanes), NO_STORE)


async def show_buckets(service: Service, request: Request, queue: str) -> Response:
    given = query.read(request.query, BUCKETS)
    lane = given.get("lane")
    if lane is None:
        lane = min((await service.engine.find_queue(request.account, queue)).lanes)
    buckets = await service.engine.buckets(
        request.account, queue, lane, given.get("first"), given.get("count", limits.STATS_BUCKETS)
    )
    return json_response(200, shapes.Buckets(lane, [shapes.Bucket(*bucket) for bucket in buckets]), NO_STORE)


def seen(message: Peeked) -> shapes.MessageSeen:
    body, body_base64 = text_or_bytes(message.body)
    return shapes.MessageSeen(
        id=str(message.id),
        body=body,
        body_base64=body_base64,
        content_type=content_type_in(message.attributes),
        deliveries=message.deliveries,
        enqueued_at=rfc3339(message.enqueued_at_ms),
        origin=origin_of(message.origin),
        group=group_of(message),
        priority=message.priority,
        due=None if message.due_ms is None else rfc3339(message.due_ms),
    )
