"""Lanes that wait for each other."""

from __future__ import annotations

from collections import Counter

from angelhair.engine.schema import POINTERS
from angelhair.errors import StoreError
from tests.faults import UNAVAILABLE
from tests.queues import SECOND, World


async def test_a9_two_queues_polled_in_turn_starve_a_lane_each(world: World) -> None:
    consumer, producer = world.server(), world.server()
    for name in ("orders", "bills"):
        await consumer.create(name, lanes=2, bucket_size=100, repair_timeout_ms=5 * SECOND)
    for name in ("orders", "bills"):
        await world.work(name, 5 * SECOND, [consumer])
    for _ in range(4):
        await producer.put("orders", b"old")
    got = Counter()
    lanes = Counter()
    for _ in range(60):
        await producer.put("orders", b"new")
        await producer.put("orders", b"new")
        for delivery in await consumer.take("orders", 1):
            got[delivery.body] += 1
            lanes[delivery.id.lane] += 1
        await consumer.take("bills", 1)
        world.wait(100)
    assert got[b"old"] == 4, (got, lanes)


async def test_a9_puts_and_receives_in_step_starve_a_lane(world: World) -> None:
    server = world.server()
    await server.create("orders", lanes=2, bucket_size=100, repair_timeout_ms=5 * SECOND)
    await world.work("orders", 5 * SECOND, [server])
    for _ in range(2):
        await server.put("orders", b"old")
    got = Counter()
    for _ in range(60):
        for _ in range(3):
            await server.put("orders", b"new")
        got.update(d.body for d in await server.take("orders", 1))
        world.wait(100)
    assert got[b"old"] == 2, got


async def test_a_lane_that_cannot_be_read_stops_no_receive(world: World) -> None:
    server = world.server()
    await server.create("orders", lanes=2, bucket_size=100, repair_timeout_ms=5 * SECOND)
    await world.work("orders", 5 * SECOND, [server])
    for _ in range(20):
        await server.put("orders", b"m")
    server.store.next("read", POINTERS, UNAVAILABLE, times=10**9, when=lambda span: span.partition.key.endswith(".0"))
    failed = 0
    for _ in range(6):
        try:
            assert len(await server.receive("orders", 1)) == 1
        except StoreError:
            failed += 1
    assert failed == 0


async def test_memory_of_ended_lanes_goes(world: World) -> None:
    server = world.server()
    await server.create("orders", lanes=1, bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    sizes = []
    for _ in range(8):
        await server.engine.change_queue(world.account, "orders", {"lanes": 2})
        for _ in range(4):
            await server.put("orders", b"m")
        await server.engine.change_queue(world.account, "orders", {"lanes": 1})
        for _ in range(6):
            await server.drain("orders")
            await world.work("orders", 10 * SECOND, [server])
        queue = await world.queue("orders")
        memory = server.engine.memory
        sizes.append((len(queue.lanes), len(memory._views), len(memory.workers)))
    assert sizes[-1][1] <= sizes[-1][0] + 1 and sizes[-1][2] <= sizes[-1][0] + 1, sizes
