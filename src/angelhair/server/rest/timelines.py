"""Timelines: a consumer touches its locks or says goodbye; a look at the shards."""

from __future__ import annotations

from typing import Literal

from angelhair.engine.timeline.inspect import ShardSeen
from angelhair.model import validate_name
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import query, timeline_shapes
from angelhair.server.rest.queues import NO_CONTENT, NO_STORE
from angelhair.server.rest.times import in_seconds, rfc3339
from angelhair.server.service import Service


async def touch(service: Service, request: Request, queue: str, consumer: str) -> Response:
    query.read(request.query, query.NONE)
    validate_name("consumer", consumer)
    share = await service.touch_consumer(request.account, queue, consumer)
    held = [timeline_shapes.ShardHeld(lane, share.fences[lane]) for lane in share.lanes]
    left_ms = max(0, share.held_until_ms - service.clock.now().monotonic_ms) if held else 0
    said = timeline_shapes.Share(consumer, held, in_seconds(share.lock_ms), in_seconds(left_ms))
    return json_response(200, said, NO_STORE)


async def leave(service: Service, request: Request, queue: str, consumer: str) -> Response:
    query.read(request.query, query.NONE)
    validate_name("consumer", consumer)
    await service.leave_consumer(request.account, queue, consumer)
    return NO_CONTENT


async def show_shards(service: Service, request: Request, queue: str) -> Response:
    query.read(request.query, query.NONE)
    found = await service.engine.shards(request.account, queue)
    lock_ms = (await service.engine.find_queue(request.account, queue)).settings.lock_ms
    now_ms = service.clock.now().wall_ms
    shards = [_shard(shard, lock_ms, now_ms) for shard in sorted(found)]
    return json_response(200, timeline_shapes.Shards(shards), NO_STORE)


def _shard(seen: ShardSeen, lock_ms: int, now_ms: int) -> timeline_shapes.Shard:
    lock: Literal["free", "held", "lapsed"] = "free"
    if seen.consumer is not None:
        # By wall clocks, which is good enough to look at: nobody takes a shard by what is said here.
        lock = "held" if now_ms - (seen.touched_at_ms or 0) < lock_ms else "lapsed"
    since_ms = seen.waiting_since_ms
    return timeline_shapes.Shard(
        shard=seen.lane,
        state="open" if seen.state == "open" else "sealed",
        lock=lock,
        consumer=seen.consumer,
        fence=seen.fence,
        taken_at=_at(seen.taken_at_ms),
        touched_at=_at(seen.touched_at_ms),
        mark=_at(seen.mark_ms),
        last=_at(seen.last_ms),
        lag=None if since_ms is None else in_seconds(max(0, now_ms - since_ms)),
    )


def _at(time_ms: int | None) -> str | None:
    return None if time_ms is None else rfc3339(time_ms)
