"""Attacks on groups of puts that form while others are under way: who joins, who waits, and who hears of an error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.batching.batching import Batching
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES, SEQUENCES
from angelhair.errors import Unavailable
from angelhair.model import MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from tests.attacks.worlds import Halt, HookedStore, SteppedClock, bodies, consume, new_world, on, played, server

BUCKET = 10


class World:
    """A server whose way to the store can be waylaid, and another one on the same lane."""

    def __init__(self) -> None:
        self.clock: SteppedClock
        self.clock, store = new_world()
        self.way = HookedStore(store)
        self.engine: Engine = server(self.way, self.clock)
        self.other: Engine = server(store, self.clock)
        self.batching = Batching(self.engine, AsyncioRuntime())
        self.groups: list[int] = []

    async def begin(self) -> None:
        await self.engine.create_queue("shop", "jobs", QueueSettings(bucket_size=BUCKET))
        await self.engine.put("shop", "jobs", [NewMessage(b"known")])

    def put(self, *texts: bytes) -> asyncio.Task[list[Any]]:
        return asyncio.create_task(self.batching.put("shop", "jobs", [NewMessage(text) for text in texts]))

    async def until_lost(self) -> Halt:
        """Another server takes ids, so that this one's next reservation is refused; it sleeps before that."""
        await self.other.put("shop", "jobs", [NewMessage(b"faster")])
        halt = Halt(on(SEQUENCES))
        self.way.hooks["change"] = halt
        return halt

    def count_groups(self) -> None:
        async def noted(writes: Sequence[Any]) -> None:
            if on(BODIES)(writes):
                self.groups.append(sum(len(write.rows) for write in writes))

        self.way.hooks["write"] = noted

    async def arrived(self) -> list[bytes]:
        return bodies(await consume(self.other, self.clock, steps=60))


@played
async def test_a_reservation_that_is_lost_is_made_again_for_all_that_have_come() -> None:
    """A server that shares a lane loses every other reservation. It went again for those who had begun it, and those
    who had come meanwhile cost another one, and another write and read."""
    world = World()
    await world.begin()
    halt = await world.until_lost()
    world.count_groups()
    early = world.put(b"early")
    await halt.reached.wait()
    joining = [world.put(b"late %d" % number) for number in range(4)]
    await asyncio.sleep(0)
    halt.wake.set()
    (first,) = await early
    outcomes = [outcome for task in joining for outcome in await task]
    assert [first.number, *(outcome.number for outcome in outcomes)] == [2, 3, 4, 5, 6]
    assert world.groups == [5], "all went together, and exactly as many ids were taken as there were messages"
    assert sorted(await world.arrived()) == sorted([b"known", b"faster", b"early", *(b"late %d" % n for n in range(4))])
    (after,) = await world.other.put("shop", "jobs", [NewMessage(b"next")])
    assert isinstance(after, MessageId) and after.number == 7


@played
async def test_who_joined_a_reservation_that_fails_hears_of_it() -> None:
    """Naive: the error reaches those who began the group, and those who joined it wait for ever."""
    world = World()
    await world.begin()
    halt = await world.until_lost()
    early = world.put(b"early")
    await halt.reached.wait()
    joining = world.put(b"late")
    await asyncio.sleep(0)
    tries = 0

    async def refused_then_away(changes: Sequence[Any]) -> list[Any] | None:
        nonlocal tries
        tries += on(SEQUENCES)(changes)
        return None if not tries else [Unavailable("no node") for _ in changes]

    world.way.hooks["change"] = refused_then_away
    halt.wake.set()
    for task in (early, joining):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(task, 5)
    assert tries == 1
    world.way.hooks.clear()
    ((outcome,),) = await asyncio.gather(world.put(b"then"))
    assert isinstance(outcome, MessageId)
    assert sorted(await world.arrived()) == [b"faster", b"known", b"then"]


@played
async def test_who_gave_up_before_the_reservation_was_made_again_takes_no_id() -> None:
    world = World()
    await world.begin()
    halt = await world.until_lost()
    early = world.put(b"early")
    await halt.reached.wait()
    impatient, patient = world.put(b"impatient"), world.put(b"patient")
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.sleep(0)
    halt.wake.set()
    assert [(await early)[0].number, (await patient)[0].number] == [2, 3]
    assert sorted(await world.arrived()) == [b"early", b"faster", b"known", b"patient"]


@played
async def test_puts_wait_for_what_is_being_written_until_they_are_as_many() -> None:
    """Small groups cost each message more; but nobody waits for a write that hangs if as many others do, and never for
    one that has ended."""
    world = World()
    await world.begin()
    hangs = Halt(lambda writes: on(BODIES)(writes) and any(row.values.get("body") == b"0" for row in writes[0].rows))
    world.way.hooks["write"] = hangs
    hanging = world.put(b"0", b"1"), world.put(b"2")
    await hangs.reached.wait()
    lone = world.put(b"lone")
    for _ in range(30):
        await asyncio.sleep(0)
    assert not lone.done(), "one request waits for two"
    second = world.put(b"second")
    await asyncio.wait_for(asyncio.gather(lone, second), 5)
    last = world.put(b"last")
    for _ in range(30):
        await asyncio.sleep(0)
    assert not last.done()
    hangs.wake.set()
    await asyncio.wait_for(asyncio.gather(*hanging, last), 5)
    assert sorted(await world.arrived()) == [b"0", b"1", b"2", b"known", b"last", b"lone", b"second"]
