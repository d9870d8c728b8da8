"""A9: what is visible again is served before what is new, and nothing is passed over. A10: delays of any length."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, POINTERS, WAKES
from angelhair.errors import OutcomeUnknown
from angelhair.model import NewMessage
from angelhair.stores.counting import CountingStore
from tests.faults import UNAVAILABLE
from tests.queues import DAY, HOUR, MINUTE, SECOND, YEAR, World, numbers


async def test_a09_again_before_new(world: World) -> None:
    """Naive: new messages first. Under steady load what came back would wait for ever."""
    server = world.server()
    await server.create("orders", bucket_size=4, visibility_timeout_ms=10 * SECOND)
    await server.put("orders", count=6)
    assert numbers(await server.receive("orders", 2)) == [0, 1]
    world.wait(11 * SECOND)
    got = await server.receive("orders", 4)
    assert [(item.id.number, item.deliveries) for item in got] == [(0, 2), (1, 2), (2, 1), (3, 1)]


async def test_a09_again_before_new_on_a_server_that_did_not_deliver(world: World) -> None:
    """Naive: know only one's own deliveries."""
    first, second = world.server(), world.server()
    await first.create("orders", bucket_size=4, visibility_timeout_ms=10 * SECOND)
    await first.put("orders", count=12)
    await first.receive("orders", 6)
    await second.receive("orders", 1, HOUR)
    world.wait(12 * SECOND)
    assert [item.deliveries for item in await second.receive("orders", 8)] == [2] * 6 + [1] * 2


async def test_a09_nothing_is_passed_over(world: World) -> None:
    """Naive: one invisibility pointer. Extend, release and ack in every order, and count what was seen."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=3, visibility_timeout_ms=5 * SECOND, repair_timeout_ms=5 * SECOND)
    await server.put("orders", count=20)
    held = await server.receive("orders", 20)
    for index, delivery in enumerate(held):
        if index % 4 == 0:
            assert await server.extend("orders", delivery, (index + 1) * 10 * SECOND) is None
        elif index % 4 == 1:
            assert await server.extend("orders", delivery, 0) is None
    acked: list[int] = []
    for _ in range(60):
        for consumer in (server, other):
            acked += numbers(await consumer.take("orders", 3))
        await other.step("orders")
        world.wait(5 * SECOND)
    assert sorted(acked) == list(range(20))


async def test_a10_delayed_by_seconds(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders", b"later", delay_ms=10 * SECOND)
    await server.put("orders", b"now")
    assert [item.body for item in await server.take("orders", 10)] == [b"now"]
    world.wait(10 * SECOND - 1)
    assert await server.receive("orders", 10) == []
    world.wait(1)
    assert [item.body for item in await server.take("orders", 10)] == [b"later"]


async def test_a10_delayed_by_years(world: World) -> None:
    """Naive: a TTL or a timer. Cassandra's TTL ends after 20 years, a timer with its process."""
    server = world.server()
    await server.create("orders", retention_ms=None)
    await server.put("orders", b"for my grandchildren", delay_ms=60 * YEAR)
    assert await server.receive("orders") == []
    world.wait(60 * YEAR - DAY)
    assert await server.receive("orders") == []
    world.wait(DAY)
    assert [item.body for item in await server.receive("orders")] == [b"for my grandchildren"]
    assert [item.body for item in await world.server().receive("orders", 1, 0)] == []


async def test_a10_delayed_found_by_a_server_that_starts_later(world: World) -> None:
    """Naive: remember delays in memory. The wake index is durable before the put is confirmed."""
    server = world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=5 * SECOND)
    await server.put("orders", b"later", delay_ms=limits.DELAY_LINE_MS)
    await server.put("orders", count=4)
    await server.drain("orders")
    await server.work("orders", limits.DELAY_LINE_MS - 5 * MINUTE, every_ms=MINUTE)
    assert (await world.marks("orders")).repair == 0
    world.wait(5 * MINUTE)
    late = world.server()
    got = []
    for _ in range(3):
        got += await late.take("orders", 10)
        world.wait(SECOND)
    assert [item.body for item in got] == [b"later"]


async def test_a10_queue_delay_and_message_delay(world: World) -> None:
    """A message's own delay replaces the queue's, zero included."""
    server = world.server()
    await server.create("orders", delay_ms=MINUTE)
    await server.put("orders", b"at once", delay_ms=0)
    await server.put("orders", b"as the queue says")
    assert [item.body for item in await server.receive("orders", 10, HOUR)] == [b"at once"]
    stats = await server.engine.stats(world.account, "orders")
    assert (stats.visible, stats.in_flight, stats.delayed) == (0, 1, 1)
    world.wait(MINUTE)
    assert [item.body for item in await server.receive("orders", 10)] == [b"as the queue says"]


@pytest.mark.parametrize("repair_timeout_ms", [5 * SECOND, DAY])
async def test_a10_stalled_put_whose_wake_entry_was_passed(world: World, repair_timeout_ms: int) -> None:
    """Naive: write the entry and forget it. The put stalls until the index has passed its slot; nobody would look.

    The message must be found on a server that has no memory of it, after its bucket was closed, by admission or
    without waiting for repair.
    """
    server, slow = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=repair_timeout_ms)
    reservation = await slow.engine.reserve(world.account, "orders", 1)
    await server.put("orders", count=3)
    for _ in range(3):
        await server.drain("orders")
        world.wait(3 * SECOND)
    assert (await world.marks("orders")).reader >= 1
    slow.store.next("write", BODIES, lambda: server.work("orders", 2 * MINUTE, every_ms=5 * SECOND))
    (outcome,) = await slow.engine.put_reserved(reservation, [NewMessage(b"late and delayed", delay_ms=10 * SECOND)])
    assert not isinstance(outcome, Exception)
    got = []
    fresh = world.server()
    for _ in range(10):
        got += [item.body for item in await fresh.take("orders", 10)]
        world.wait(SECOND)
    assert got == [b"late and delayed"]


async def test_a10_without_its_wake_entry_a_delayed_put_is_not_confirmed(world: World) -> None:
    """Naive: ignore a failed entry. The message would be found by luck only."""
    server = world.server()
    await server.create("orders", bucket_size=1)
    server.store.next("write", WAKES, UNAVAILABLE, times=100)
    outcomes = await server.put_outcomes("orders", [NewMessage(b"delayed", delay_ms=MINUTE), NewMessage(b"plain")])
    assert isinstance(outcomes[0], OutcomeUnknown)
    assert not isinstance(outcomes[1], Exception)


async def test_a10_many_delayed_do_not_slow_a_receive_down(world: World) -> None:
    """Naive: scan over what is delayed. A receive reads a bounded number of rows, however many wait."""
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await server.create("orders", bucket_size=100)
    for _ in range(4):
        await server.put("orders", count=500, delay_ms=10 * MINUTE)
    await server.receive("orders", 1)
    await server.put("orders", b"now")
    while not await server.take("orders"):
        pass
    for _ in range(5):
        world.wait(SECOND)
        await server.put("orders", b"now")
        before = counting.counts
        assert len(await server.take("orders")) == 1
        spent = counting.counts - before
        assert spent.rows_read <= 3 * limits.PREFETCH_MESSAGES
        assert spent.reads <= 20


async def test_a10_delay_cannot_be_confirmed_without_the_marks(world: World) -> None:
    """Whether the entry still lies ahead of the index is not known: neither is the put."""
    server = world.server()
    await server.create("orders")
    server.store.next("read", POINTERS, UNAVAILABLE, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-", delay_ms=SECOND)])
    assert isinstance(outcome, OutcomeUnknown)


@pytest.mark.parametrize("delay_ms", [1, 999, 1_000, 10 * MINUTE])
async def test_a10_any_length(world: World, delay_ms: int) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders", delay_ms=delay_ms)
    assert await server.receive("orders") == []
    world.wait(delay_ms)
    assert numbers(await server.receive("orders")) == [0]
