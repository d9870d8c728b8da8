"""How many messages are in flight: never more than the limit by one server's doing, and rarely counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.engine.engine import Engine
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, Delivery, NewMessage, QueueSettings
from angelhair.server.sqs.errors import OverLimit
from angelhair.server.sqs.flights import Flights
from angelhair.stores.memory import MemoryStore
from tests.costs.clocks import StillClock

SHOP, JOBS = "shop", "jobs"


class Server:
    """An engine whose counts are counted."""

    def __init__(self, store: MemoryStore, clock: StillClock) -> None:
        self.engine = Engine(store, RandomIdentities(), clock)
        self.flights = Flights(self._receive, self._stats, clock)
        self.counts = 0

    async def _receive(self, account: str, name: str, ask: Ask) -> list[Delivery]:
        (found,) = await self.engine.receive(account, name, [ask])
        return found

    async def _stats(self, account: str, name: str) -> Stats:
        self.counts += 1
        return await self.engine.stats(account, name)

    async def receive(self, most: int, limit: int, is_told: bool = True) -> list[Delivery]:
        queue = await self.engine.find_queue(SHOP, JOBS)
        return await self.flights.receive(queue, limit, Ask(most, visibility_ms=60_000), is_told)

    async def ack(self, deliveries: list[Delivery]) -> None:
        await self.engine.ack(SHOP, JOBS, [delivery.receipt for delivery in deliveries])

    async def in_flight(self) -> int:
        return (await self.engine.stats(SHOP, JOBS)).in_flight


class World:
    def __init__(self) -> None:
        self.clock = StillClock()
        self.store = MemoryStore(self.clock.now_ms)
        self.server = Server(self.store, self.clock)

    async def queue(self, messages: int) -> None:
        await self.server.engine.create_queue(SHOP, JOBS, QueueSettings())
        if messages:
            await self.server.engine.put(SHOP, JOBS, [NewMessage(b"x")] * messages)


def played(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test(World()))

    del run.__wrapped__  # type: ignore[attr-defined]  # pytest would look there for fixtures
    return run


@played
async def test_as_many_as_the_limit_says_and_no_more(world: World) -> None:
    await world.queue(20)
    server = world.server
    assert [len(await server.receive(3, 5)), len(await server.receive(3, 5))] == [3, 2]
    with pytest.raises(OverLimit):
        await server.receive(1, 5)
    assert await server.receive(1, 5, is_told=False) == []
    assert await server.in_flight() == 5


@played
async def test_what_is_deleted_makes_room_at_once_unless_it_was_counted_a_moment_ago(world: World) -> None:
    await world.queue(20)
    server = world.server
    for _ in range(2):
        await server.ack(await server.receive(5, 5))
    found = await server.receive(5, 5)
    with pytest.raises(OverLimit):
        await server.receive(1, 5)
    await server.ack(found[:2])
    counts = server.counts
    with pytest.raises(OverLimit):
        await server.receive(1, 5)
    assert server.counts == counts
    world.clock.advance(1_000)
    assert len(await server.receive(5, 5)) == 2
    assert await server.in_flight() == 5


@played
async def test_what_times_out_makes_room_too(world: World) -> None:
    await world.queue(5)
    assert len(await world.server.receive(5, 5)) == 5
    world.clock.advance(60_001)
    assert len(await world.server.receive(5, 5)) == 5


@played
async def test_receives_at_the_same_time_do_not_pass_it_together(world: World) -> None:
    await world.queue(100)
    answers = await asyncio.gather(
        *(world.server.receive(10, 25, is_told=False) for _ in range(8)), return_exceptions=True
    )
    assert sum(len(found) for found in answers if isinstance(found, list)) == 25
    assert await world.server.in_flight() == 25


@played
async def test_receives_at_the_same_time_of_an_empty_queue_are_told_of_no_limit(world: World) -> None:
    await world.queue(0)
    assert await asyncio.gather(*(world.server.receive(10, 5) for _ in range(8))) == [[]] * 8


@played
async def test_far_below_the_limit_it_is_counted_once(world: World) -> None:
    await world.queue(500)
    for _ in range(50):
        await world.server.ack(await world.server.receive(10, 1_000))
        world.clock.advance(60_000)
    assert world.server.counts == 1


@played
async def test_above_half_of_the_limit_it_is_counted_every_ten_seconds(world: World) -> None:
    await world.queue(100)
    for _ in range(6):
        await world.server.receive(10, 100)
    assert world.server.counts == 1
    for seconds in (9, 1, 9, 1):
        world.clock.advance(seconds * 1_000)
        await world.server.receive(1, 100)
    assert world.server.counts == 3


@played
async def test_at_the_limit_it_is_counted_once_a_second(world: World) -> None:
    """Also where a message goes and one comes, all the time."""
    await world.queue(200)
    server = world.server
    found = await server.receive(50, 50)
    counts = server.counts
    for number in range(20):
        world.clock.advance(100)
        await server.ack([found[number]])
        found += await server.receive(1, 50, is_told=False)
    assert server.counts - counts <= 3


@played
async def test_what_another_server_hands_out_is_known_within_ten_seconds_above_half_of_the_limit(world: World) -> None:
    await world.queue(100)
    other = Server(world.store, world.clock)
    assert len(await world.server.receive(16, 30)) == 16
    assert len(await other.receive(14, 30)) == 14
    assert len(await world.server.receive(1, 30)) == 1
    world.clock.advance(10_000)
    with pytest.raises(OverLimit):
        await world.server.receive(1, 30)


@played
async def test_a_queue_that_is_forgotten_is_counted_again(world: World) -> None:
    await world.queue(10)
    assert len(await world.server.receive(10, 5)) == 5
    anew = Server(world.store, world.clock)
    with pytest.raises(OverLimit):
        await anew.receive(10, 5)


@played
async def test_a_queue_that_is_made_again_has_nothing_in_flight(world: World) -> None:
    await world.queue(10)
    assert len(await world.server.receive(10, 5)) == 5
    await world.server.engine.delete_queue(SHOP, JOBS)
    await world.queue(10)
    assert len(await world.server.receive(10, 5)) == 5


def test_only_so_many_queues_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AWS_IN_FLIGHT_QUEUES", 2)

    async def play(world: World) -> None:
        for _ in range(5):
            await world.queue(1)
            await world.server.receive(1, 5)
            await world.server.engine.delete_queue(SHOP, JOBS)
        assert len(world.server.flights._known) == 2

    asyncio.run(play(World()))
