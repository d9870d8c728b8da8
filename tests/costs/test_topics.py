"""What a publication costs, from its confirmation to the last queue, counted by a store without puts in one step."""

from __future__ import annotations

import asyncio

from angelhair import limits
from angelhair.batching.batching import Batching
from angelhair.batching.fanout import Fanout
from angelhair.batching.topics import Publishing
from angelhair.engine.engine import Engine
from angelhair.engine.topics.postings import OUTBOX, hidden_account
from angelhair.engine.topics.values import (
    QUEUE,
    NewSubscription,
    Posting,
    Publication,
    Published,
    Target,
    TopicSettings,
    as_published,
    queue_endpoint,
)
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, QueueSettings, WantedChange
from angelhair.server.runtime import AsyncioRuntime
from angelhair.stores.counting import CountingStore, Counts
from angelhair.stores.memory import MemoryStore
from tests.costs.clocks import StillClock

ACCOUNT = "account"
QUEUES = ("a", "b", "c")
PUBLICATIONS = limits.FANOUT_MESSAGES

CHANGES_OF_A_GROUP = 12
READS_OF_A_GROUP = 40
"""The bars: for a hundred publications to three queues, all of it together. Each is a round trip on Cassandra, and most
of them are made at the same time."""

CHANGES_OF_A_MESSAGE_AGAIN = 2.5
"""For each message that is spread again: its key is written twice."""


class Nobody:
    def spread(self, account: str, count: int) -> None:
        pass

    def dropped(self, posting: Posting, target: Target, why: str) -> None:
        raise AssertionError(why)

    def waits(self, posting: Posting, target: Target, why: str) -> None:
        raise AssertionError(why)

    def unreadable(self, account: str, why: str) -> None:
        raise AssertionError(why)


class World:
    def __init__(self) -> None:
        self.clock = StillClock()
        self.store = CountingStore(MemoryStore(lambda: self.clock.now().wall_ms))
        self.engine = Engine(self.store, RandomIdentities(), self.clock)
        runtime = AsyncioRuntime()
        self.batching = Batching(self.engine, runtime)
        self.publishing = Publishing(self.batching, runtime)
        self.fanout = Fanout(self.batching, self.publishing, runtime, self.batching.put, as_published, Nobody())

    async def make(self) -> None:
        await self.engine.topics.create(ACCOUNT, "news", TopicSettings())
        for name in QUEUES:
            await self.engine.create_queue(ACCOUNT, name, QueueSettings())
            wanted = NewSubscription(QUEUE, queue_endpoint(ACCOUNT, name))
            await self.engine.topics.subscribe(ACCOUNT, "news", wanted)
        await self.publish()
        assert await self.fanout.step(ACCOUNT, OUTBOX) == PUBLICATIONS

    async def publish(self) -> None:
        outcomes = await self.publishing.publish(ACCOUNT, "news", [Publication(b"x" * 200)] * PUBLICATIONS)
        assert all(isinstance(outcome, Published) for outcome in outcomes)


def test_a_publication_costs_no_change_of_its_own() -> None:
    async def play() -> Counts:
        world = World()
        await world.make()
        before = world.store.counts
        await world.publish()
        assert await world.fanout.step(ACCOUNT, OUTBOX) == PUBLICATIONS
        return world.store.counts - before

    cost = asyncio.run(play())
    print(f"{PUBLICATIONS} publications to {len(QUEUES)} queues: {cost}")
    assert cost.changes - cost.changes_refused <= CHANGES_OF_A_GROUP
    assert cost.reads <= READS_OF_A_GROUP
    # What is written is written once for the outbox and once for each queue; wakes aside.
    assert cost.rows_written <= (len(QUEUES) + 1) * PUBLICATIONS + CHANGES_OF_A_GROUP


def test_only_what_is_spread_again_pays_for_keys() -> None:
    async def play() -> Counts:
        world = World()
        await world.make()
        await world.publish()
        hidden = hidden_account(ACCOUNT)
        lost = await world.batching.receive(hidden, OUTBOX, Ask(PUBLICATIONS))
        await world.batching.change(hidden, OUTBOX, [WantedChange(delivery.receipt, 0) for delivery in lost])
        before = world.store.counts
        assert await world.fanout.step(ACCOUNT, OUTBOX) == PUBLICATIONS
        return world.store.counts - before

    cost = asyncio.run(play())
    print(f"{PUBLICATIONS} publications to {len(QUEUES)} queues, spread again: {cost}")
    messages = PUBLICATIONS * len(QUEUES)
    assert messages <= cost.changes <= CHANGES_OF_A_MESSAGE_AGAIN * messages
