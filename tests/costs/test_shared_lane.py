"""What it costs that several servers work on one lane: conditional writes that another one was faster at.

In turns that are always the same: each server's calls of the store take a turn of the loop, as those of the others do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.batching.batching import Batching
from angelhair.engine.engine import Engine
from angelhair.engine.members import Holdings, Presence
from angelhair.engine.store import Refused, Store
from angelhair.model import Ask, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from angelhair.stores.memory import MemoryStore
from tests.costs.clients import SeededIdentities
from tests.costs.clocks import StillClock
from tests.faults import Between

BUCKET = 200
CLIENTS = 16
MESSAGES_EACH = 2 * BUCKET

LOST_CLAIMS_EACH = 2
"""Where they begin, and hardly ever again."""

TURNS = 24
"""Of the loop, that a call of the store takes."""


class SharedStore(Between):
    """One server's way to the store, on which its calls take their time; counts what others were faster at."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.lost_claims = 0

    async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
        await asyncio.sleep(0)
        answers = await super()._pass(verb, items)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if verb == "change":
            self.lost_claims += sum(
                isinstance(answer, Refused) and any("delivery" in row.values for row in change.rows)
                for change, answer in zip(items, answers, strict=True)
            )
        return answers


class Shared:
    """So many servers that know of each other, one queue with one lane, and the same clients at each."""

    def __init__(self, count: int) -> None:
        self.clock = StillClock()
        store = MemoryStore(self.clock.now_ms)
        self.stores = [SharedStore(store) for _ in range(count)]
        self.engines = [
            Engine(way, SeededIdentities(number), self.clock) for number, way in enumerate(self.stores)
        ]
        self.batchings = [Batching(engine, AsyncioRuntime()) for engine in self.engines]

    async def begin(self) -> None:
        for _ in range(2):
            for number, engine in enumerate(self.engines):
                await engine.membership.step(Presence(f"127.0.0.1:{number}", "here", number, "1", 0), Holdings())
        assert {engine.membership.size for engine in self.engines} == {len(self.engines)}
        await self.engines[0].create_queue("shop", "jobs", QueueSettings(bucket_size=BUCKET))

    async def put(self) -> None:
        async def client(batching: Batching) -> None:
            for _ in range(MESSAGES_EACH // CLIENTS):
                await batching.put("shop", "jobs", [NewMessage(b"x")])

        await asyncio.gather(*(client(batching) for batching in self.batchings for _ in range(CLIENTS)))

    async def take(self, share: float) -> int:
        """Receives and acks so much of it; how many messages were seen more than once."""
        seen: list[str] = []

        async def client(batching: Batching) -> None:
            for _ in range(int(share * MESSAGES_EACH) // CLIENTS):
                while not (given := await batching.receive("shop", "jobs", Ask(1))):
                    pass
                (delivery,) = given
                seen.append(str(delivery.id))
                assert await batching.ack("shop", "jobs", [delivery.receipt]) == [None]

        await asyncio.gather(*(client(batching) for batching in self.batchings for _ in range(CLIENTS)))
        return len(seen) - len(set(seen))

    @property
    def lost_claims(self) -> int:
        return sum(way.lost_claims for way in self.stores)


@pytest.mark.parametrize("servers", [2, 4])
def test_a12_servers_that_share_a_lane_meet_once_and_go_on_by_themselves(servers: int) -> None:
    async def test() -> None:
        world = Shared(servers)
        await world.begin()
        await world.put()
        assert await world.take(0.75) == 0
        assert 0 < world.lost_claims <= LOST_CLAIMS_EACH * servers

    asyncio.run(test())
