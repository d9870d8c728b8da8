"""R11: priorities and noisy tenants are lanes of their own; who is served first, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from angelhair import limits
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.schema import QUEUES, SEQUENCES
from angelhair.errors import InvalidRequest
from angelhair.model import Delivery, MessageId, NewMessage
from tests.faults import UNAVAILABLE
from tests.queues import SECOND, Server, World, succeeded

NOISY = Rank(noisy=True)
AHEAD = limits.NOISY_MESSAGES + limits.NOISY_MESSAGES // (limits.RANK_SHARE - 1) + 1
"""Messages of a flood that may be given before a quiet one: those that came before it was a flood, and with them an
eighth of the turns."""


def priorities(deliveries: list[Delivery]) -> list[int]:
    return [delivery.priority for delivery in deliveries]


async def take_one_by_one(server: Server, name: str, most: int = 10_000) -> list[Delivery]:
    taken: list[Delivery] = []
    while len(taken) < most and (found := await server.take(name)):
        taken += found
    return taken


async def flood(server: Server, name: str, messages: int, tenant: str = "flood", batch: int = 10) -> None:
    for _ in range(messages // batch):
        await server.put(name, count=batch, group=tenant)


# --- priorities -------------------------------------------------------------------------------------------------------


async def test_r11_a_higher_priority_is_served_first(world: World) -> None:
    server = world.server()
    await server.create("orders", priorities=4)
    for priority in (0, 2, 1, 3, 0, 3):
        await server.put("orders", b"p%d" % priority, priority=priority)
    # Fewer receives than it takes until somebody else's turn comes.
    taken = await take_one_by_one(server, "orders")
    assert priorities(taken) == [3, 3, 2, 1, 0, 0]
    assert [delivery.body for delivery in taken] == [b"p3", b"p3", b"p2", b"p1", b"p0", b"p0"]


async def test_r11_one_batch_of_all_priorities_is_answered_in_its_own_order(world: World) -> None:
    server = world.server()
    await server.create("orders", priorities=3)
    outcomes = await server.put_outcomes(
        "orders", [NewMessage(b"%d" % number, priority=number % 3) for number in range(9)]
    )
    ids = [succeeded(outcome) for outcome in outcomes]
    assert len(set(ids)) == 9
    delivered = {delivery.id: delivery.body for delivery in await server.drain("orders")}
    assert [delivered[each] for each in ids] == [b"%d" % number for number in range(9)]


async def test_r11_the_lowest_priority_does_not_starve(world: World) -> None:
    """Naive: always the highest. Whoever keeps the highest full keeps the others waiting for ever."""
    server = world.server()
    await server.create("orders", priorities=4)
    for priority in range(3):
        await server.put("orders", count=2, priority=priority)
    seen: Counter[int] = Counter()
    for _ in range(2 * 3 * limits.RANK_SHARE + limits.RANK_SHARE):
        await server.put("orders", priority=3)
        seen.update(priorities(await server.take("orders")))
    assert {seen[0], seen[1], seen[2]} == {2}
    assert seen[3] >= 7 * sum(seen[priority] for priority in range(3))


async def test_r11_a_redelivery_keeps_its_priority_and_comes_before_what_is_new(world: World) -> None:
    server = world.server()
    await server.create("orders", priorities=2, visibility_timeout_ms=SECOND)
    await server.put("orders", b"urgent", priority=1)
    (first,) = await server.receive("orders")
    await server.put("orders", b"new", priority=0)
    await server.put("orders", b"new and urgent", priority=1)
    world.wait(2 * SECOND)
    again = await server.receive("orders", 2)
    assert [(delivery.body, delivery.priority) for delivery in again] == [(b"urgent", 1), (b"new and urgent", 1)]
    assert again[0].id == first.id


async def test_r11_a_priority_that_the_queue_does_not_have_is_its_highest(world: World) -> None:
    server = world.server()
    await server.create("orders", priorities=2)
    await server.create("plain")
    await server.put("orders", priority=9)
    await server.put("plain", priority=9)
    assert priorities(await server.receive("orders")) == [1]
    assert priorities(await server.receive("plain")) == [0]
    for wrong in (-1, limits.PRIORITIES_MAXIMUM, True, "1"):
        with pytest.raises(InvalidRequest, match="priority"):
            await server.put("orders", priority=wrong)


async def test_r11_priorities_change_while_the_queue_is_in_use(world: World) -> None:
    """More of them are lanes that are made; fewer are lanes that are sealed, and read in their order to their end."""
    server, stale = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND, history_ms=0, lanes=2)
    await stale.put("orders", b"before", priority=3)
    await server.engine.change_queue(world.account, "orders", {"priorities": 4})
    queue = await world.queue("orders")
    assert Counter(queue.rank_of(lane) for lane in queue.open_lanes) == {Rank(level): 2 for level in range(4)}
    await server.put("orders", b"urgent", b"urgent", b"urgent", priority=3)
    await server.put("orders", b"less", priority=1)
    await server.engine.change_queue(world.account, "orders", {"priorities": 1, "lanes": 1})
    # Who did not hear of it puts to a lane that takes no more, looks again and takes another.
    await stale.put("orders", b"after", priority=3)
    taken = [delivery.body for delivery in await take_one_by_one(server, "orders", 5)]
    assert taken[:3] == [b"urgent"] * 3 and taken[3] == b"less"
    assert len(taken) + len(await server.drain("orders")) == 6
    for _ in range(8):
        await server.work("orders", 5 * SECOND)
        await server.drain("orders")
    queue = await world.queue("orders")
    assert (len(queue.lanes), dict(queue.ranks)) == (1, {})


async def test_r11_stats_and_peek_see_every_rank(world: World) -> None:
    server = world.server()
    await server.create("orders", priorities=3)
    for priority in (0, 1, 2):
        await server.put("orders", count=3, priority=priority)
    await server.receive("orders")
    stats = await server.engine.stats(world.account, "orders")
    assert (stats.visible, stats.in_flight) == (8, 1)
    assert [seen.priority for seen in await server.engine.peek(world.account, "orders", 5)] == [2, 2, 1, 1, 1]
    await server.engine.purge(world.account, "orders")
    assert await server.receive("orders") == []


async def test_r11_keys_work_across_priorities(world: World) -> None:
    """R10: one key is one message, whatever priority the second try gives it."""
    server = world.server()
    await server.create("orders", priorities=2)
    (first,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k", priority=1)])
    (second,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k", priority=0)])
    assert first == second
    assert priorities(await server.drain("orders")) == [1]


async def test_r11_several_servers_serve_every_rank(world: World) -> None:
    """With lanes that others hold, and an eighth of the receives for each lower rank, nothing is left lying."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders", priorities=2, lanes=2)
    for _ in range(3):
        await world.work("orders", 2 * SECOND, servers)
    for number in range(40):
        await servers[number % 3].put("orders", b"%d" % number, priority=number % 2)
    taken = await take_one_by_one(servers[2], "orders")
    assert sorted(int(delivery.body) for delivery in taken) == list(range(40))


def test_what_settings_allow() -> None:
    from angelhair.model import QueueSettings

    QueueSettings(priorities=limits.PRIORITIES_MAXIMUM, lanes=limits.LANES_MAXIMUM).validated()
    for wrong in ({"priorities": 0}, {"priorities": 11}, {"fair": 1}, {"kind": "fifo", "priorities": 2}):
        with pytest.raises(InvalidRequest):
            QueueSettings(**wrong).validated()  # type: ignore[arg-type]


async def test_r11_priorities_share_the_lanes_that_a_queue_may_have(world: World) -> None:
    server = world.server()
    await server.create("orders", priorities=10, lanes=64)
    queue = await world.queue("orders")
    assert Counter(queue.rank_of(lane) for lane in queue.open_lanes) == {Rank(level): 6 for level in range(10)}


# --- noisy tenants ----------------------------------------------------------------------------------------------------


async def test_r11_a_tenant_that_floods_the_queue_gets_lanes_of_its_own(world: World) -> None:
    server = world.server()
    await server.create("orders")
    assert (await world.queue("orders")).lanes_made == 1
    await flood(server, "orders", 100)
    queue = await world.queue("orders")
    assert Counter(queue.rank_of(lane) for lane in queue.open_lanes) == {PLAIN: 1, NOISY: 1}
    (noisy,) = queue.open_lanes_of(NOISY)
    assert (await world.marks("orders")).next_id == limits.NOISY_MESSAGES
    assert (await world.marks("orders", noisy)).next_id == 100 - limits.NOISY_MESSAGES
    assert len(await server.drain("orders")) == 100


async def test_r11_quiet_tenants_pass_the_flood(world: World) -> None:
    """Of every message of a quiet tenant it is counted how many of the flood were delivered while it waited."""
    passed = {}
    for fair in (True, False):
        server = world.server()
        await server.create(f"fair-{fair}", fair=fair)
        passed[fair] = await _waits_of_quiet_tenants(server, f"fair-{fair}")
    assert max(passed[True]) <= AHEAD
    assert max(passed[True][1:]) <= 2
    assert min(passed[False]) >= 3 * AHEAD


async def _waits_of_quiet_tenants(server: Server, name: str) -> list[int]:
    await flood(server, name, 300, batch=100)
    delivered, waits = 0, []
    for number in range(20):
        body = b"quiet %d" % number
        await server.put(name, body, group=f"tenant-{number % 5}")
        begun = delivered
        while (taken := await server.take(name)) and body not in [found.body for found in taken]:
            delivered += len(taken)
            if delivered - begun > 3 * AHEAD:
                return [delivered - begun]
        assert taken
        waits.append(delivered - begun)
    return waits


async def test_r11_the_flood_is_served_too_while_quiet_tenants_keep_coming(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await flood(server, "orders", 100)
    await take_one_by_one(server, "orders", AHEAD)
    flooding = 0
    for number in range(5 * limits.RANK_SHARE):
        await server.put("orders", b"quiet", group=f"tenant-{number}")
        (taken,) = await server.take("orders")
        flooding += taken.body != b"quiet"
    assert 4 <= flooding <= 6


async def test_r11_who_was_noisy_is_quiet_again(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await flood(server, "orders", 200)
    noisy = (await world.queue("orders")).open_lanes_of(NOISY)
    (last,) = await server.put_outcomes("orders", [NewMessage(b"-", group="flood")])
    assert isinstance(last, MessageId) and last.lane in noisy
    assert len(await server.drain("orders", 10)) == 201
    (after,) = await server.put_outcomes("orders", [NewMessage(b"-", group="flood")])
    assert isinstance(after, MessageId) and after.lane not in noisy


async def test_r11_many_tenants_of_equal_size_are_all_quiet(world: World) -> None:
    server = world.server()
    await server.create("orders")
    for _ in range(4):
        for tenant in range(20):
            await server.put("orders", count=10, group=f"tenant-{tenant}")
    queue = await world.queue("orders")
    assert [queue.rank_of(lane) for lane in queue.lanes] == [PLAIN]


async def test_r11_messages_without_groups_or_of_a_queue_that_is_not_fair_make_no_lanes(world: World) -> None:
    server = world.server()
    await server.create("plain")
    await server.create("unfair", fair=False)
    for _ in range(10):
        await server.put("plain", count=20)
    await flood(server, "unfair", 200)
    assert (await world.queue("plain")).lanes_made == (await world.queue("unfair")).lanes_made == 1


async def test_r11_where_no_lane_can_be_made_the_flood_goes_among_the_others(world: World) -> None:
    """A1: nothing but a turn depends on it."""
    server = world.server()
    await server.create("orders")
    await flood(server, "orders", 30)
    server.store.next("change", QUEUES, UNAVAILABLE)
    await server.put("orders", count=5, group="flood")
    server.store.next("change", SEQUENCES, UNAVAILABLE)
    await server.put("orders", count=5, group="flood")
    assert (await world.marks("orders")).next_id == 40
    await server.put("orders", count=5, group="flood")
    assert len((await world.queue("orders")).open_lanes_of(NOISY)) == 1
    assert len(await server.drain("orders")) == 45


async def test_r11_two_servers_meet_a_flood_at_once(world: World) -> None:
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders", lanes=2)
    for server in servers:
        await server.put("orders", count=limits.NOISY_MESSAGES, group="flood")
    await asyncio.gather(*(flood(server, "orders", 50) for server in servers))
    queue = await world.queue("orders")
    assert len(queue.open_lanes_of(NOISY)) == 2
    assert len(await servers[1].drain("orders")) == 3 * (limits.NOISY_MESSAGES + 50)


async def test_r11_no_longer_fair_its_noisy_lanes_are_read_to_their_end(world: World) -> None:
    server, stale = world.server(), world.server()
    await server.create("orders", bucket_size=10, repair_timeout_ms=SECOND, history_ms=0)
    await flood(stale, "orders", 100)
    await server.engine.change_queue(world.account, "orders", {"fair": False})
    await stale.put("orders", count=10, group="flood")
    assert len(await server.drain("orders")) == 110
    for _ in range(6):
        await server.work("orders", 5 * SECOND)
    queue = await world.queue("orders")
    assert (list(queue.lanes), dict(queue.ranks)) == ([0], {})


async def test_r11_a_noisy_tenant_with_priorities_waits_within_its_priority(world: World) -> None:
    server = world.server()
    await server.create("orders", priorities=2)
    await server.put("orders", b"low", priority=0)
    for _ in range(4):
        await server.put("orders", count=10, priority=1, group="flood")
    await server.put("orders", b"quiet", priority=1, group="tenant")
    queue = await world.queue("orders")
    assert len(queue.open_lanes_of(Rank(1, True))) == 1
    (found,) = [delivery for delivery in await server.take("orders", 31) if delivery.body == b"quiet"]
    assert found.priority == 1


async def test_r11_tenants_are_forgotten_beyond_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TENANTS", 4)
    monkeypatch.setattr(limits, "TENANT_RUNS", 4)
    server = world.server()
    queue = await server.create("orders")
    for number in range(25):
        await server.put("orders", group=f"tenant-{number}")
        await server.put("orders", count=2, group="flood")
    tenants = server.engine.memory.tenants(queue)._tenants
    assert len(tenants) == 4
    assert max(len(runs) for runs in tenants["flood"].put.values()) <= 4
    assert tenants["flood"].noisy
    assert len(await server.drain("orders")) == 75
