"""Attempts to break timelines, each by a way that somebody thought of (R8, W5, W6, W9)."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import CONSUMERS, DUES, SHARDS
from angelhair.errors import InvalidRequest, StaleReceipt, StoreError
from angelhair.model import MessageId
from tests.faults import UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, shard, take, touch
from tests.queues import HOUR, MINUTE, SECOND, YEAR, Server, World

LOCK = 10 * SECOND


async def test_without_hiding_a_receive_is_given_each_message_once(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"a", b"b", in_ms=DELAY)
    world.wait(DELAY)
    assert sorted(bodies(await receive(server, 100, hide_ms=0))) == [b"a", b"b"]
    world.wait(1)
    again = await receive(server, 100, hide_ms=0)
    assert sorted(bodies(again)) == [b"a", b"b"] and {delivery.deliveries for delivery in again} == {2}


async def test_a_delivery_may_be_extended_twice_in_one_instant(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"a", b"b", in_ms=DELAY)
    world.wait(DELAY)
    found = await receive(server)
    for _ in range(3):
        for delivery in found:
            assert await server.extend(NAME, delivery, 5 * SECOND) is None
    world.wait(5 * SECOND - 1)
    assert await receive(server) == []
    world.wait(1)
    assert len(await receive(server)) == 2


async def test_an_ack_that_comes_while_its_message_is_set_aside_counts(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)

    async def ack_it() -> None:
        assert await ack(server, delivery) == [None]

    server.store.next("write", DUES, ack_it, after=True)
    assert await server.extend(NAME, delivery, MINUTE) is None
    for _ in range(90):
        world.wait(SECOND)
        await server.step(NAME)
        assert await receive(server) == []


async def test_a_copy_that_was_left_in_a_sealed_shard_does_not_keep_it_for_years(world: World) -> None:
    server, stale = world.server(), world.server()
    await create(server, lanes=2)
    await put(stale, b"-", in_ms=DELAY)
    await server.engine.change_queue(world.account, NAME, {"lanes": 1})
    for second in range(2):
        await put(stale, b"far", in_ms=YEAR + second * SECOND)
    world.wait(DELAY)
    assert b"-" in await take(server)
    for _ in range(30):
        world.wait(SECOND)
        await server.step(NAME)
        await take(server)
    assert len((await world.queue(NAME)).lanes) == 1


async def test_a_server_that_stops_gives_its_shards_back(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=3)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    assert await take(server, consumer="a") == [b"-"]
    await server.engine.release_leases()
    assert len((await touch(other, "b")).lanes) == 3
    assert await receive(other, consumer="b") == []


async def test_a_consumer_may_change_how_many_shards_it_wants(world: World) -> None:
    first, second = world.server(), world.server()
    await create(first, lanes=4)
    for most, expected in ((1, [1, 3]), (None, [2, 2]), (3, [2, 2])):
        for _ in range(12):
            shares = [await touch(first, "a", most), await touch(second, "b")]
            world.wait(LOCK // 4)
        assert [len(share.lanes) for share in shares] == expected


async def test_what_does_not_expire_cannot_begin_to(world: World) -> None:
    server = world.server()
    await create(server, expire_after_ms=None)
    with pytest.raises(InvalidRequest, match="expire_after"):
        await server.engine.change_queue(world.account, NAME, {"expire_after_ms": HOUR})


async def test_w9_a_name_that_cannot_be_written_does_not_cost_the_locks(world: World) -> None:
    """The row of names is for fairness only: who cannot beat there still touches what it holds."""
    server = world.server()
    incarnation = await create(server, lanes=1)
    await touch(server, "a")
    server.store.next("write", CONSUMERS, UNAVAILABLE, times=1_000)
    for _ in range(8):
        world.wait(LOCK // 4)
        with pytest.raises(StoreError):
            await touch(server, "a")
    assert (await shard(world, incarnation))["fence"] == 1


async def test_w6_two_servers_for_one_consumer_lose_nothing(world: World) -> None:
    servers = [world.server(), world.server()]
    await create(servers[0], lanes=2, visibility_timeout_ms=5 * SECOND)
    put_ones = []
    processed: set[bytes] = set()
    for number in range(60):
        put_ones.append(b"%d" % number)
        server = servers[number % 2]
        await put(server, put_ones[-1])
        world.wait(SECOND)
        found = await receive(server, consumer="a")
        # The other one is told, as happens behind a balancer; what it says in vain it says so, or it comes again.
        outcomes = await ack(servers[(number + 1) % 2], *found)
        processed |= {each.body for each, outcome in zip(found, outcomes, strict=True) if outcome is None}
        await servers[0].step(NAME)
        await servers[1].step(NAME)
    for _ in range(60):
        world.wait(SECOND)
        processed |= set(await take(servers[0], consumer="a"))
    assert processed == set(put_ones)


class Attack:
    """Many producers and consumers, in an order that a number decides; a checker that believes nobody."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.state = seed
        self.servers: list[Server] = [world.server(ahead_ms=ahead) for ahead in (0, 3 * SECOND, -3 * SECOND)]
        self.bodies: dict[MessageId, bytes] = {}
        self.processed: set[bytes] = set()
        self.number = 0

    def choose(self, count: int) -> int:
        self.state = (self.state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return (self.state >> 33) % count

    async def act(self) -> None:
        which, what = self.choose(3), self.choose(10)
        server = self.servers[which]
        if what < 4:
            self.number += 1
            body = b"%d" % self.number
            (placed,) = await put(server, body, in_ms=(self.choose(20) - 5) * SECOND)
            self.bodies[placed] = body
        elif what < 7:
            found = await receive(server, 1 + self.choose(20), consumer=f"{self.choose(2)} of server {which}")
            kept = [delivery for delivery in found if self.choose(5)]
            if kept:
                outcomes = await ack(server, *kept)
                self.processed |= {each.body for each, said in zip(kept, outcomes, strict=True) if said is None}
        elif what == 7:
            await server.step(NAME)
        elif what == 8:
            self.world.wait(self.choose(4 * SECOND))
        elif not self.choose(10):
            await server.engine.change_queue(self.world.account, NAME, {"lanes": 1 + self.choose(4)})
        if not self.choose(12):
            table = (SHARDS, DUES)[self.choose(2)]
            verb = "change" if table is SHARDS else "write"
            server.store.next(verb, table, ("lose answer", "never sent", "unavailable")[self.choose(3)])


@pytest.mark.parametrize("seed", range(3))
async def test_r8_whatever_the_order_every_message_is_processed(world: World, seed: int) -> None:
    attack = Attack(world, seed)
    await create(attack.servers[0], lanes=3, producer_delay_ms=(0, SECOND, DELAY)[seed % 3], lock_ms=2 * SECOND,
                 visibility_timeout_ms=3 * SECOND)
    for _ in range(400):
        try:
            await attack.act()
        except StoreError:
            continue
    for server in attack.servers:
        server.store.heal()
    missing = set(attack.bodies.values())
    for _ in range(120):
        world.wait(SECOND)
        for server in attack.servers:
            await server.step(NAME)
        missing -= set(await take(attack.servers[0], consumer="last"))
    # Acked once is processed; but an ack in memory that was lost comes again, so both count.
    assert missing <= attack.processed, missing - attack.processed
    assert (await attack.servers[0].engine.stats(world.account, NAME)).visible == 0


async def test_stale_receipts_of_a_lost_shard_change_nothing(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server, consumer="a")
    await server.engine.leave_consumer(world.account, NAME, "a")
    (again,) = await receive(other, consumer="b")
    before = await shard(world, incarnation)
    for each in (server, other):
        (outcome,) = await ack(each, delivery)
        assert isinstance(outcome, StaleReceipt)
        assert isinstance(await each.extend(NAME, delivery, 0), StaleReceipt)
    assert await shard(world, incarnation) == before
    assert await ack(other, again) == [None]
    await pass_time(other, 3 * SECOND)
    assert str((await shard(world, incarnation))["last"]) >= str(again.id)[2:]


async def test_what_was_set_aside_is_not_given_where_it_lay_though_its_shard_was_lost_before_the_checkpoint(
    world: World,
) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server, consumer="a")
    assert await server.extend(NAME, delivery, MINUTE) is None
    # Its lock is over before the checkpoint was moved; it takes the shard anew, and reads from the old checkpoint on.
    world.wait(LOCK)
    assert await receive(server, consumer="a") == []
    assert await ack(server, delivery) == [None]
    for _ in range(90):
        world.wait(SECOND)
        assert await receive(server, consumer="a") == []


async def test_w8_a_shard_that_another_consumer_of_the_server_lost_is_taken_on(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    assert len(await receive(server, consumer="a")) == 1
    # No background here, and "a" never asks again: its lock lapses in the sight of "b".
    assert await receive(server, consumer="b") == []
    world.wait(LOCK)
    assert bodies(await receive(server, consumer="b")) == [b"-"]
