"""A11: one repair worker per lane, elected by conditional writes. A12: any number of servers on one store."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.schema import LEASES, STATES
from angelhair.engine.store import Span
from angelhair.model import MessageId, NewMessage
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT
from tests.queues import HOUR, MINUTE, SECOND, Server, World, numbers


async def holder(world: World) -> tuple[object, object]:
    """Who holds the lease of lane 0, and its fencing number."""
    queue = await world.queue("orders")
    (found,) = await world.store.read([Span(places.leases(queue.incarnation, 0))])
    values = found.rows[0].values if found.rows else {}
    return values.get("holder"), values.get("fence")


async def test_a11_one_is_elected(world: World) -> None:
    """Naive: everybody repairs."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders")
    await asyncio.gather(*(server.step("orders") for server in servers))
    names = [server.engine.memory.server for server in servers]
    elected, fence = await holder(world)
    assert elected in names and fence == 1
    await world.work("orders", MINUTE, servers)
    assert await holder(world) == (elected, 1)


async def test_a11_another_takes_over_when_it_dies(world: World) -> None:
    """Naive: a lease without an end, or one that ends while its holder beats."""
    first, second = world.server(), world.server()
    await first.create("orders")
    await world.work("orders", 5 * SECOND, [first, second])
    assert await holder(world) == (first.engine.memory.server, 1)
    await second.work("orders", limits.LEASE_MS - limits.LEASE_BEAT_MS - SECOND)
    assert (await holder(world))[0] == first.engine.memory.server
    await second.work("orders", 2 * limits.LEASE_BEAT_MS)
    assert await holder(world) == (second.engine.memory.server, 2)


async def test_a11_skewed_clocks_steal_nothing(world: World) -> None:
    """Naive: a lease that ends at a wall time. A server an hour ahead would take it at once, one behind never."""
    first, fast, slow = world.server(), world.server(ahead_ms=HOUR), world.server(ahead_ms=-HOUR)
    await first.create("orders")
    await world.work("orders", MINUTE, [first, fast, slow])
    assert await holder(world) == (first.engine.memory.server, 1)
    await slow.work("orders", 12 * SECOND)
    assert await holder(world) == (slow.engine.memory.server, 2)


async def test_a11_clock_that_jumps_while_it_watches(world: World) -> None:
    """Naive: watch by the wall clock. Set an hour forward, it would have waited long enough at once (R5)."""
    first, second = world.server(), world.server()
    await first.create("orders")
    await world.work("orders", 3 * SECOND, [first, second])
    second.clock.ahead_ms = HOUR
    await second.step("orders")
    assert await holder(world) == (first.engine.memory.server, 1)
    second.clock.ahead_ms = -HOUR
    await second.work("orders", 12 * SECOND)
    assert await holder(world) == (second.engine.memory.server, 2)


async def test_a11_given_back_it_is_free_at_once(world: World) -> None:
    first, second = world.server(), world.server()
    await first.create("orders")
    await first.step("orders")
    await second.step("orders")
    await first.engine.release_leases()
    await first.engine.release_leases()
    await second.step("orders")
    assert await holder(world) == (second.engine.memory.server, 2)


async def test_a11_beat_of_unknown_outcome(world: World) -> None:
    """Naive: believe oneself dead, or alive, after a time-out. The next beat decides."""
    first, second = world.server(), world.server()
    await first.create("orders")
    await first.step("orders")
    for fault in (LOSE_ANSWER, NEVER_SENT):
        rule = first.store.next("change", LEASES, fault, times=limits.SETTLE_ATTEMPTS + 1)
        await world.work("orders", 8 * SECOND, [first, second])
        assert rule.times == 0
        assert await holder(world) == (first.engine.memory.server, 1)
    await world.work("orders", MINUTE, [first, second])
    assert await holder(world) == (first.engine.memory.server, 1)


async def test_a11_sleeper_finds_its_lease_taken(world: World) -> None:
    """Naive: go on after a pause as if nothing had been. The fencing number has moved."""
    first, second = world.server(), world.server()
    await first.create("orders")
    await world.work("orders", 5 * SECOND, [first, second])
    await second.work("orders", 15 * SECOND)
    await first.step("orders")
    assert await holder(world) == (second.engine.memory.server, 2)
    await world.work("orders", MINUTE, [first, second])
    assert await holder(world) == (second.engine.memory.server, 2)


async def test_a11_two_at_once_do_no_harm(world: World) -> None:
    """Naive: rest safety on the election. Two workers repair, finish and drop the same buckets, step by step."""
    first, second = world.server(), world.server()
    await first.create("orders", bucket_size=2, repair_timeout_ms=5 * SECOND, history_ms=0)
    reservation = await first.engine.reserve(world.account, "orders", 1)
    assert reservation.first == 0
    put = await first.put("orders", count=9)
    acked = numbers(await first.take("orders", 5))
    await world.work("orders", 3 * SECOND, [first, second])
    # The second one is elected while the first is asleep in the middle of a step, and works to the end meanwhile.
    await first.receive("orders", 1, SECOND)
    for _ in range(20):
        first.store.next("change", STATES, lambda: second.work("orders", 12 * SECOND))
        await world.work("orders", 2 * SECOND, [first])
        acked += numbers(await first.take("orders", 5)) + numbers(await second.take("orders", 5))
        if len(acked) == len(put):
            break
    assert sorted(acked) == put
    first.store.heal()
    await world.work("orders", MINUTE, [first, second])
    marks = await world.marks("orders")
    assert (marks.repair, marks.dropped) == (5, 5)


async def test_a11_late_beat_does_not_bring_a_lease_back(world: World) -> None:
    """A beat that lands after the takeover is refused: it is conditioned on holder, fence and beat."""
    first, second = world.server(), world.server()
    await first.create("orders")
    await world.work("orders", 2 * SECOND, [first, second])
    first.store.next("change", LEASES, ARRIVE_LATE, times=100)
    world.wait(3 * SECOND)
    await first.step("orders")
    await second.work("orders", 15 * SECOND)
    await first.store.land()
    assert await holder(world) == (second.engine.memory.server, 2)


async def produce(server: Server, batches: int, each: int) -> list[int]:
    put: list[int] = []
    for _ in range(batches):
        put += await server.put("orders", count=each)
        await asyncio.sleep(0)
    return put


async def consume(server: Server, done: asyncio.Event) -> list[int]:
    acked: list[int] = []
    idle = 0
    while idle < 3:
        found = numbers(await server.take("orders", 7))
        acked += found
        await asyncio.sleep(0)
        if not found and done.is_set():
            idle += 1
            server.world.wait(SECOND)
    return acked


async def test_a12_many_servers_on_one_queue(world: World) -> None:
    """Naive: a server that owns its queue. Four produce, four consume, each message is acked once and none is left."""
    servers = [world.server() for _ in range(4)]
    await servers[0].create("orders", bucket_size=16, visibility_timeout_ms=HOUR, repair_timeout_ms=5 * SECOND)
    done = asyncio.Event()
    consumers = [asyncio.ensure_future(consume(server, done)) for server in servers]
    put = [number for group in await asyncio.gather(*(produce(server, 5, 8) for server in servers)) for number in group]
    done.set()
    acked = [number for group in await asyncio.gather(*consumers) for number in group]
    await world.work("orders", 20 * SECOND, servers)
    acked += numbers(await servers[0].drain("orders"))
    assert sorted(put) == list(range(160))
    assert sorted(acked) == sorted(put)


async def test_a12_a_server_sees_what_another_did(world: World) -> None:
    """Naive: answers from a memory that is never checked."""
    first, second = world.server(), world.server()
    await first.create("orders", visibility_timeout_ms=10 * SECOND)
    assert await second.receive("orders") == []
    await first.put("orders", b"hello")
    (delivery,) = await second.receive("orders")
    assert await first.receive("orders") == []
    assert await first.ack("orders", delivery) == [None]
    await second.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": HOUR})
    world.wait(limits.CATALOG_AGE_MS)
    await first.put("orders")
    (delivery,) = await first.receive("orders")
    assert delivery.visible_at_ms == world.dial.wall_ms + HOUR


async def test_a12_servers_prefer_the_lanes_they_hold(world: World) -> None:
    """Adding a server adds throughput: each puts into lanes of its own, so that they do not contend."""
    first, second = world.server(), world.server()
    await first.create("orders", lanes=2)
    await first.step("orders")
    await first.engine.memory.workers[(await world.queue("orders")).incarnation, 1].lease.release(
        world.store, first.clock.now()
    )
    await second.step("orders")
    lanes = []
    for server in [first] * 4 + [second] * 4:
        (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-")])
        assert isinstance(outcome, MessageId)
        lanes.append(outcome.lane)
    assert lanes == [0] * 4 + [1] * 4
    assert sorted(str(item.id) for item in await second.receive("orders", 4)) == ["1-0", "1-1", "1-2", "1-3"]


async def test_a11_a_wrong_clock_leaves_the_work_to_a_good_one(world: World) -> None:
    """Naive: a holder that may neither expire nor drop keeps its lease, and nobody does."""
    wrong, good = world.server(ahead_ms=HOUR), world.server()
    await wrong.create("orders")
    await world.work("orders", 5 * SECOND, [wrong, good])
    assert (await holder(world))[0] == wrong.engine.memory.server
    await world.work("orders", 2 * MINUTE, [wrong, good])
    elected = await holder(world)
    assert elected[0] == good.engine.memory.server
    await world.work("orders", MINUTE, [wrong, good])
    assert await holder(world) == elected


async def test_a11_a_wrong_clock_works_where_no_other_does(world: World) -> None:
    """Naive: only a server with a good clock is elected, and where there is none nothing is repaired."""
    wrong = world.server(ahead_ms=HOUR)
    await wrong.create("orders", bucket_size=2, repair_timeout_ms=2 * MINUTE)
    await wrong.engine.reserve(world.account, "orders", 1)
    await wrong.put("orders", count=2)
    assert len(await wrong.receive("orders", 2)) == 2
    world.wait(limits.CLOSE_PATIENCE_MS + 1)
    await wrong.receive("orders", 1)
    # Longer than it holds the lease without a pause: it must go on waiting where it left off.
    await world.work("orders", 4 * MINUTE, [wrong])
    assert (await world.marks("orders")).final == 1


async def held_lanes(world: World) -> dict[int, tuple[object, object]]:
    """By lane: who holds its lease, and the fencing number."""
    queue = await world.queue("orders")
    lanes = sorted(queue.lanes)
    found = await world.store.read([Span(places.leases(queue.incarnation, lane)) for lane in lanes])
    return {
        lane: (part.rows[0].values.get("holder"), part.rows[0].values.get("fence"))
        for lane, part in zip(lanes, found, strict=True)
    }


def shares(held: dict[int, tuple[object, object]]) -> list[int]:
    return sorted(Counter(name for name, _ in held.values()).values())


async def test_a12_lanes_are_shared_out_among_the_servers(world: World) -> None:
    """Naive: whoever comes first keeps every lane, and those who come later are in its way in all of them."""
    servers = [world.server()]
    await servers[0].create("orders", lanes=5)
    await world.work("orders", 5 * SECOND, servers)
    assert shares(await held_lanes(world)) == [5]
    for expected in ([2, 3], [1, 2, 2], [1, 1, 1, 2]):
        servers.append(world.server())
        await world.work("orders", 20 * SECOND, servers)
        held = await held_lanes(world)
        assert shares(held) == expected
        # Nobody takes back what was taken: the fencing numbers stand still.
        await world.work("orders", MINUTE, servers)
        assert await held_lanes(world) == held
    # One that goes leaves its share to the others.
    await servers.pop(0).engine.release_leases()
    await world.work("orders", 20 * SECOND, servers)
    assert shares(await held_lanes(world)) == [1, 2, 2]


async def test_a12_a_share_is_taken_by_what_is_so_now(world: World) -> None:
    """Naive: count what each server held when it was last looked at; then a server loses its only lane, takes it back
    from whoever has two by then, and lanes wander while servers are busy."""
    first, second, third = world.server(), world.server(), world.server()
    await first.create("orders", lanes=2)
    await first.step("orders")
    await third.step("orders")
    queue = await second.engine.find_queue(world.account, "orders")
    lease = second.engine.memory.worker(second.engine.memory.lane(queue, 1)).lease
    assert await lease.keep(world.store, second.clock, losing=frozenset({first.engine.memory.server}))
    shared = await held_lanes(world)
    assert [name for name, _ in shared.values()] == [first.engine.memory.server, second.engine.memory.server]
    await third.step("orders")
    assert await held_lanes(world) == shared


async def test_a12_a_server_with_a_wrong_clock_takes_no_share(world: World) -> None:
    """It could do only part of the work (R5)."""
    first, fast = world.server(), world.server(ahead_ms=HOUR)
    await first.create("orders", lanes=4)
    await world.work("orders", MINUTE, [first, fast])
    assert shares(await held_lanes(world)) == [4]


@pytest.mark.parametrize("fields", [{}, {"delay_ms": SECOND}, {"key": "k"}], ids=["plain", "delayed", "keyed"])
async def test_a12_a_lone_server_fills_every_lane_alike(world: World, fields: dict[str, Any]) -> None:
    """Naive: take a turn for each attempt. Whoever makes two attempts a put then skips the same lanes for ever."""
    server = world.server()
    await server.create("orders", lanes=4)
    for number in range(12):
        keyed = {"key": f"k{number}"} if "key" in fields else {}
        await server.put("orders", **{**fields, **keyed})
    marks = await server.engine.marks(world.account, "orders")
    assert [lane.next_id for lane in marks.values()] == [3, 3, 3, 3]
