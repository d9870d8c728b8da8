"""More at once than one look takes, and memory that is bounded. Bounds are lowered where reaching them takes long."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine import catalog, places
from angelhair.engine.store import Slice, Span
from tests.queues import DAY, HOUR, MINUTE, SECOND, World, numbers


@pytest.mark.parametrize("entries", [2, 5])
async def test_r03_more_wake_entries_than_one_read_brings(
    world: World, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    """The slot that the limit cuts through is read again from its beginning, or whole if it is the only one."""
    monkeypatch.setattr(limits, "WAKE_ENTRIES", entries)
    monkeypatch.setattr(limits, "WAKE_VISITS", 2)
    server = world.server()
    await server.create("orders", bucket_size=1, repair_timeout_ms=SECOND)
    await server.put("orders", count=8)
    for number in range(8):
        assert numbers(await server.receive("orders", 1, (5 + number // 4) * SECOND)) == [number]
    world.wait(10 * SECOND)
    other = world.server()
    got: list[int] = []
    for _ in range(20):
        got += numbers(await other.take("orders", 10))
        await other.step("orders")
        world.wait(SECOND)
    assert sorted(got) == list(range(8))


async def test_a14_memory_of_queues_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMEMBERED_QUEUES", 2)
    server = world.server()
    for name in ("a", "b", "c"):
        await server.create(name)
        await server.put(name, name.encode())
    for name in ("a", "b", "c"):
        assert [item.body for item in await server.receive(name)] == [name.encode()]


async def test_a14_memory_of_a_lane_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches, entries and finished buckets that are forgotten cost a look, never a message."""
    monkeypatch.setattr(limits, "WATCHED_ROWS", 2)
    slow, server = world.server(ahead_ms=-HOUR), world.server()
    await server.create("orders", bucket_size=1, visibility_timeout_ms=5 * SECOND, repair_timeout_ms=SECOND)
    await server.put("orders", count=6)
    held = await server.receive("orders", 6)
    assert await server.ack("orders", *held[1:]) == [None] * 5
    await server.work("orders", 10 * SECOND)
    got = numbers(await server.take("orders", 10))
    for _ in range(20):
        await slow.work("orders", 5 * SECOND)
        got += numbers(await slow.take("orders", 10))
    assert got == [0]


async def test_stats_of_many_buckets_are_estimates(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In flight below the reader mark, visible above: both ends are seen, and the rest is stretched."""
    monkeypatch.setattr(limits, "STATS_BUCKETS", 4)
    server = world.server()
    await server.create("empty")
    empty = await server.engine.stats(world.account, "empty")
    assert (empty.visible, empty.oldest_age_ms, empty.exact) == (0, None, True)
    assert await server.engine.peek(world.account, "empty", 5) == []
    await server.create("orders", bucket_size=2, visibility_timeout_ms=HOUR)
    await server.put("orders", count=40)
    held = []
    while len(held) < 20:
        held += await server.receive("orders", 20 - len(held))
    stats = await server.engine.stats(world.account, "orders")
    assert not stats.exact
    assert (stats.in_flight, stats.visible) == (pytest.approx(20, abs=4), pytest.approx(20, abs=4))
    assert await server.ack("orders", *held) == [None] * 20
    await server.work("orders", MINUTE)
    stats = await server.engine.stats(world.account, "orders")
    assert (stats.in_flight, stats.visible) == (0, 20)
    assert [item.id.number for item in await server.engine.peek(world.account, "orders", 3)] == [20, 21, 22]


async def test_a_large_batch_of_large_bodies_is_read_in_portions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: read as many bodies as were asked for. A thousand of 8 MiB are more than a server has memory for."""
    monkeypatch.setattr(limits, "PORTION_BYTES", 10_000)
    monkeypatch.setattr(limits, "FIRST_BODY_BYTES", 1_000)
    monkeypatch.setattr(limits, "PREFETCH_BYTES", 1_000)
    monkeypatch.setattr(limits, "RECEIVE_BYTES", 30_000)
    server = world.server()
    read_bytes: list[int] = []
    reading = server.store.read

    async def read(spans: list[Span]) -> list[Slice]:
        found = await reading(spans)
        read_bytes.append(sum(len(row.values.get("body") or b"") for part in found for row in part.rows))
        return found

    monkeypatch.setattr(server.store, "read", read)
    await server.create("orders", visibility_timeout_ms=MINUTE)
    await server.put("orders", *[b"%01000d" % number for number in range(100)])
    for wait_ms in (0, 2 * MINUTE):
        world.wait(wait_ms)
        received, receives = [], 0
        while found := await server.receive("orders", 1_000):
            assert len(found) <= 40
            received += found
            receives += 1
        assert receives <= 5
        assert [item.body for item in received] == [b"%01000d" % number for number in range(100)]
        assert max(read_bytes) <= 12_000


async def test_a_page_of_names_is_full_though_queues_are_being_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: a page without a name that says there are more, and callers that stop at the first empty page."""
    server = world.server()
    for name in ("a", "b", "c", "d"):
        await server.create(name)

    async def never_finished(*_: object) -> None:
        """The server that deletes dies before it is through."""

    monkeypatch.setattr(catalog, "finish_deleting", never_finished)
    for name in ("a", "b"):
        await server.engine.delete_queue(world.account, name)
    assert await server.engine.list_queues(world.account, most=1) == (["c"], True)
    assert await server.engine.list_queues(world.account, most=2) == (["c", "d"], False)


async def test_a14_wake_rows_of_a_deleted_queue_go_however_far_ahead(world: World) -> None:
    """Naive: drop the index up to the present. What was hidden for years would leave its rows behind for good."""
    server = world.server()
    queue = await server.create("orders")
    await server.put("orders", count=2)
    first, second = await server.receive("orders", 2)
    await server.extend("orders", first, 1_000 * DAY)
    await server.extend("orders", second, 30 * DAY)
    now_ms = world.dial.wall_ms
    far = [places.wake_period(places.wake_slot(now_ms + days * DAY)) for days in (30, 1_000)]
    spans = [Span(places.wakes(queue.incarnation, 0, period + step)) for period in far for step in (-1, 0, 1)]
    assert sum(len(part.rows) for part in await world.store.read(spans)) == 2
    await server.engine.delete_queue(world.account, "orders")
    await server.bury()
    assert sum(len(part.rows) for part in await world.store.read(spans)) == 0
