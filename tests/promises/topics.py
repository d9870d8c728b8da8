"""Short ways to say what tests of topics say often."""

from __future__ import annotations

from typing import Any

from angelhair.batching.batching import Batching
from angelhair.batching.fanout import Fanout
from angelhair.batching.topics import Publishing
from angelhair.engine.topics.postings import FIFO_OUTBOX, OUTBOX, hidden_account
from angelhair.engine.topics.values import (
    QUEUE,
    NewSubscription,
    Posting,
    Publication,
    Published,
    Subscription,
    Target,
    Topic,
    TopicSettings,
    as_published,
    queue_endpoint,
)
from angelhair.model import FIFO
from angelhair.server.runtime import AsyncioRuntime
from tests.queues import Server, World, succeeded

NEWS = "news"


class Told:
    """Hears of what becomes of publications."""

    def __init__(self) -> None:
        self.done = 0
        self.gone: list[tuple[str, str]] = []
        self.waiting: list[tuple[str, str]] = []
        self.unread: list[str] = []

    def spread(self, account: str, count: int) -> None:
        self.done += count

    def dropped(self, posting: Posting, target: Target, why: str) -> None:
        self.gone.append((posting.body.decode(), target.endpoint.partition("/")[2]))

    def waits(self, posting: Posting, target: Target, why: str) -> None:
        self.waiting.append((posting.body.decode(), target.endpoint.partition("/")[2]))

    def unreadable(self, account: str, why: str) -> None:
        self.unread.append(why)


class Topics:
    """One server's topics: it publishes, and spreads only when a test says so."""

    def __init__(self, world: World, server: Server | None = None) -> None:
        self.world = world
        self.server = server or world.server()
        self.verbs = self.server.engine.topics
        runtime = AsyncioRuntime()
        batching = Batching(self.server.engine, runtime)
        self.told = Told()
        self.publishing = Publishing(batching, runtime)
        self.fanout = Fanout(batching, self.publishing, runtime, batching.put, as_published, self.told)

    async def make(self, *queues: str, topic: str = NEWS, fifo: bool = False, **settings: Any) -> Topic:
        """A topic, and queues of its kind that are subscribed to it."""
        made, _ = await self.verbs.create(
            self.world.account, topic, TopicSettings(kind=FIFO if fifo else "standard", **settings)
        )
        for queue in queues:
            await self.server.create(queue, kind=FIFO if fifo else "bucketed")
            await self.subscribe(queue, topic)
        return made

    async def subscribe(self, queue: str, topic: str = NEWS, **wanted: Any) -> Subscription:
        endpoint = queue_endpoint(self.world.account, queue)
        made, _ = await self.verbs.subscribe(self.world.account, topic, NewSubscription(QUEUE, endpoint, **wanted))
        return made

    async def unsubscribe(self, queue: str, topic: str = NEWS) -> None:
        for one in await self.verbs.subscriptions(self.world.account, topic):
            if one.endpoint == queue_endpoint(self.world.account, queue):
                assert await self.verbs.unsubscribe(self.world.account, topic, one.id)

    async def publish(self, *bodies: str, topic: str = NEWS, **fields: Any) -> list[Published]:
        """Publications that must be confirmed."""
        wanted = [Publication(body.encode(), **fields) for body in bodies]
        return [succeeded(one) for one in await self.publishing.publish(self.world.account, topic, wanted)]

    async def spread(self, outbox: str | None = None) -> int:
        """Until nothing that is visible is left; how many were spread."""
        found = 0
        for name in (OUTBOX, FIFO_OUTBOX) if outbox is None else (outbox,):
            while count := await self.fanout.step(self.world.account, name):
                found += count
        return found

    async def bodies(self, queue: str) -> list[str]:
        return [delivery.body.decode() for delivery in await self.server.drain(queue)]

    async def left(self, outbox: str = OUTBOX) -> int:
        """How many publications are still in the outbox, visible or not."""
        stats = await self.server.engine.stats(hidden_account(self.world.account), outbox)
        return stats.visible + stats.in_flight
