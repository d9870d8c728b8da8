"""A14: a queue holds far more than memory, and its cost per operation does not grow with what has passed through it."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.model import NewMessage
from angelhair.stores.counting import CountingStore, Counts
from tests.queues import DAY, HOUR, MINUTE, SECOND, Server, World

GROUP = 1_000
"""Messages in one request."""


async def through(server: Server, count: int) -> None:
    """So many messages are put, delivered and acked, and the worker follows."""
    for _ in range(count // GROUP):
        await server.put("orders", count=GROUP)
        while await server.take("orders", GROUP):
            pass
        server.world.wait(SECOND)
        await server.step("orders")


async def cost_of(server: Server, counting: CountingStore, count: int) -> Counts:
    before = counting.counts
    await through(server, count)
    return counting.counts - before


async def test_a14_cost_is_flat(world: World) -> None:
    """Naive: scan from the beginning, or over what was deleted. The same work after 200 and after 20,000 messages."""
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await server.create("orders", bucket_size=500, repair_timeout_ms=5 * SECOND, history_ms=0)
    for _ in range(2):
        await server.put("orders", count=100)
        await server.drain("orders")
    early = await cost_of(server, counting, 2 * GROUP)
    await through(server, 20_000)
    late = await cost_of(server, counting, 2 * GROUP)
    assert late.changes <= early.changes * 1.05
    assert late.reads <= early.reads * 1.05
    assert late.rows_read <= early.rows_read * 1.05
    assert late.writes <= early.writes * 1.05
    marks = await world.marks("orders")
    assert marks.next_id == 24_200
    assert marks.dropped >= 45


async def test_a14_finished_buckets_really_go(world: World) -> None:
    """Naive: mark and keep. What has passed through leaves nothing behind but the marks."""
    server = world.server()
    await server.create("orders", bucket_size=5, repair_timeout_ms=5 * SECOND, history_ms=HOUR)
    await server.put("orders", count=50)
    await server.drain("orders")
    await server.work("orders", 10 * SECOND)
    assert [len((await world.bucket("orders", bucket))[1]) for bucket in range(10)] == [5] * 10
    await server.work("orders", 2 * HOUR, every_ms=5 * 60 * SECOND)
    left = [key for key in await world.dump() if key[0] in ("bodies", "states")]
    assert left == []
    assert (await world.marks("orders")).dropped == 10


async def test_a14_history_keeps_them_for_its_time(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=5, history_ms=2 * DAY)
    await server.put("orders", count=5)
    await server.drain("orders")
    await server.work("orders", 10 * SECOND)
    await server.work("orders", DAY, every_ms=HOUR)
    assert (await world.marks("orders")).floor == 0
    await server.work("orders", DAY + HOUR, every_ms=HOUR)
    assert (await world.marks("orders")).dropped == 1


async def test_a14_archive_mark_holds_the_floor(world: World) -> None:
    """Naive: drop by time alone. With `archive` on nothing goes before it is safe elsewhere."""
    server = world.server()
    await server.create("orders", bucket_size=2, history_ms=0, archive=True)
    await server.put("orders", count=6)
    await server.drain("orders")
    await server.work("orders", 10 * SECOND)
    assert (await world.marks("orders"))[:6][-2:] == (3, 0)
    engine = server.engine
    assert await engine.archived_up_to(world.account, "orders", 0, 2) == 2
    assert await engine.archived_up_to(world.account, "orders", 0, 1) == 2
    await server.work("orders", 3 * SECOND)
    assert (await world.marks("orders")).dropped == 2
    assert await engine.archived_up_to(world.account, "orders", 0, 99) == 3
    await server.work("orders", 3 * SECOND)
    assert (await world.marks("orders")).dropped == 3


@pytest.mark.parametrize("depth", [100, 3_000])
async def test_a14_stats_and_peek_read_a_bounded_number_of_buckets(world: World, depth: int) -> None:
    """Naive: count every message. Beyond the bound the numbers are estimates, and say so."""
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await server.create("orders", bucket_size=20, visibility_timeout_ms=DAY)
    for _ in range(depth // 100):
        await server.put("orders", count=100)
    in_flight = len(await server.receive("orders", depth // 4))
    world.wait(5 * SECOND)
    before = counting.counts
    stats = await server.engine.stats(world.account, "orders")
    assert (counting.counts - before).reads <= 2 * limits.STATS_BUCKETS + 8
    assert stats.exact is (depth == 100)
    assert stats.visible + stats.in_flight == pytest.approx(depth, rel=0.1)
    assert stats.in_flight == in_flight
    assert stats.oldest_age_ms == 5 * SECOND
    before = counting.counts
    assert len(await server.engine.peek(world.account, "orders", 10)) == 10
    assert (counting.counts - before).reads <= 2 * limits.STATS_BUCKETS + 8


async def test_a14_stats_of_a_long_backlog_read_little_of_it(world: World) -> None:
    """Naive: as many buckets as may be read, though they say the same: whoever counts stands still for it."""
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await server.create("orders", bucket_size=10, visibility_timeout_ms=DAY)
    await server.put("orders", count=1_000)
    await server.put("orders", count=30, delay_ms=MINUTE)
    assert len(await server.receive("orders", 25)) == 25
    before = counting.counts
    stats = await server.engine.stats(world.account, "orders")
    buckets = 3 + limits.STATS_WAITING_BUCKETS
    assert (counting.counts - before).reads <= 2 * buckets + 4
    assert (stats.exact, stats.in_flight, stats.visible + stats.delayed) == (False, 25, 1_005)


async def test_a14_lone_put_and_lone_ack(world: World) -> None:
    """A lone put: one conditional write, one blind write, one read. A lone ack: one conditional write."""
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await server.create("orders")
    await server.put("orders")
    before = counting.counts
    await server.put_outcomes("orders", [NewMessage(b"-")])
    spent = counting.counts - before
    assert (spent.changes, spent.writes, spent.reads) == (1, 1, 1)
    (delivery, _) = await server.receive("orders", 2)
    before = counting.counts
    await server.ack("orders", delivery)
    spent = counting.counts - before
    assert (spent.changes, spent.writes, spent.reads) == (1, 0, 0)


async def test_a14_what_may_go_goes_at_once_when_it_is_asked_for(world: World) -> None:
    """Whoever asks needs no lease; what is kept for its history or for the lake stays."""
    worker, asking = world.server(), world.server()
    await worker.create("orders", bucket_size=5, repair_timeout_ms=5 * SECOND, history_ms=HOUR, archive=True)
    await worker.put("orders", count=50)
    await worker.drain("orders")
    await worker.work("orders", 10 * SECOND)
    world.wait(2 * HOUR)
    assert await asking.engine.retire(world.account, "orders") == {0: range(0)}
    assert await asking.engine.archived_up_to(world.account, "orders", 0, 7) == 7
    assert await asking.engine.retire(world.account, "orders") == {0: range(7)}
    assert await asking.engine.retire(world.account, "orders") == {0: range(7, 7)}
    marks = await world.marks("orders")
    assert (marks.floor, marks.dropped, marks.repair) == (7, 7, 10)
    assert [len((await world.bucket("orders", bucket))[1]) for bucket in range(10)] == [0] * 7 + [5] * 3
