"""Inspecting buckets: an operator sees where every message is, and changes nothing by looking."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.bucketed.inspect import BucketSeen
from angelhair.errors import InvalidRequest, QueueNotFound
from angelhair.model import NewMessage
from tests.queues import HOUR, MINUTE, SECOND, Server, World


async def seen(server: Server, first: int | None = None, count: int = limits.STATS_BUCKETS) -> list[BucketSeen]:
    return await server.engine.buckets(server.world.account, "orders", 0, first, count)


async def test_every_message_is_somewhere(world: World) -> None:
    """Visible, in flight, delayed and settled add up to what was put."""
    server = world.server()
    await server.create("orders", bucket_size=4, visibility_timeout_ms=HOUR)
    assert await seen(server) == []
    await server.put("orders", count=5)
    await server.put("orders", delay_ms=10 * MINUTE)
    first, *_ = await server.receive("orders", 3)
    assert await server.ack("orders", first) == [None]
    assert await seen(server) == [
        BucketSeen(0, "open", 4, settled=1, visible=1, in_flight=2), BucketSeen(1, "open", 2, visible=1, delayed=1),
    ]
    world.wait(HOUR + SECOND)
    assert [bucket[2:] for bucket in await seen(server)] == [(4, 1, 3, 0, 0), (2, 0, 2, 0, 0)]


async def test_states_in_their_order(world: World) -> None:
    """A bucket is open, closed, settled, finished and dropped, one after the other, and looking moves it nowhere."""
    server = world.server()
    await server.create(
        "orders", bucket_size=2, repair_timeout_ms=5 * SECOND, history_ms=MINUTE, visibility_timeout_ms=HOUR
    )
    reservation = await server.engine.reserve(world.account, "orders", 1)
    await server.put("orders", count=2)
    states = [(await seen(server))[0].state]
    deliveries = await server.receive("orders", 10)
    world.wait(limits.CLOSE_PATIENCE_MS + SECOND)
    assert await server.receive("orders") == []
    states.append((await seen(server))[0].state)
    await server.work("orders", 10 * SECOND)
    before = await world.dump()
    states.append((await seen(server))[0].state)
    assert await world.dump() == before
    assert await server.ack("orders", *deliveries) == [None] * 2
    await server.work("orders", 10 * SECOND)
    states.append((await seen(server))[0].state)
    await server.work("orders", 5 * MINUTE, every_ms=5 * SECOND)
    states.append((await seen(server, first=0))[0].state)
    assert states == ["open", "closed", "settled", "finished", "dropped"]
    assert (await seen(server))[0].bucket == 1, "what was dropped is left out unless asked for"
    assert await server.engine.put_reserved(reservation, [NewMessage(b"late")])


async def test_purged_messages_are_settled(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=3)
    await server.put("orders", count=3)
    await server.engine.purge(world.account, "orders")
    await server.put("orders")
    assert await seen(server) == [BucketSeen(0, "open", 3, settled=3), BucketSeen(1, "open", 1, visible=1)]


async def test_a_bounded_number_at_a_time(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=1)
    most = limits.STATS_BUCKETS
    await server.put("orders", count=most + 2)
    assert len(await seen(server)) == most
    assert [bucket.bucket for bucket in await seen(server, most)] == [most, most + 1]
    assert [bucket.bucket for bucket in await seen(server, 5, 2)] == [5, 6]
    assert await seen(server, limits.INTEGER_LIMIT - 1) == []
    for first, count in ((-1, 1), (0, 0), (0, most + 1)):
        with pytest.raises(InvalidRequest):
            await seen(server, first, count)


async def test_unknown_lanes_and_queues(world: World) -> None:
    server = world.server()
    await server.create("orders")
    with pytest.raises(InvalidRequest) as refusal:
        await server.engine.buckets(world.account, "orders", 1, None, 1)
    assert refusal.value.field == "lane"
    with pytest.raises(QueueNotFound):
        await server.engine.buckets(world.account, "nobody", 0, None, 1)
