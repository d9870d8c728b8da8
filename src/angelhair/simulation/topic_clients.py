"""Simulated clients of topics: publishers, who subscribe and unsubscribe queues, and consumers of those."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from angelhair.engine.topics.values import Publication, TopicSettings
from angelhair.errors import AngelhairError, InvalidRequest, TopicNotFound
from angelhair.model import FIFO, QueueSettings
from angelhair.simulation.clients import REQUEST_TIMEOUT_MS
from angelhair.simulation.network import NoAnswer, ask
from angelhair.simulation.servers import ACCOUNT
from angelhair.simulation.topic_history import CREATE, DELETE, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, Deed, TopicHistory
from angelhair.simulation.topic_servers import TopicServer
from angelhair.simulation.world import World

T = TypeVar("T")
REPEATED_SHARE = 0.3
"""Of the publications to a fifo topic, those that are published again under their key."""


class TopicClients:
    """They share one process that nothing ever happens to."""

    def __init__(
        self, world: World, servers: dict[str, TopicServer], history: TopicHistory, topic: str, settings: TopicSettings,
        groups: int,
    ) -> None:
        self.world = world
        self.process = world.start("clients", skew_us=0)
        self.servers = servers
        self.history = history
        self.topic = topic
        self.settings = settings
        self.groups = groups
        self.random = world.random
        self.draining = False
        self._bodies = 0

    async def request(self, work: Callable[[TopicServer], Coroutine[Any, Any, T]]) -> T:
        self.history.operations += 1
        name = self.random.choice(list(self.servers))
        server = self.servers[name]
        return await ask(
            self.world.faults, self.process, self.world.processes[name], lambda: work(server), REQUEST_TIMEOUT_MS
        )

    async def publish(self, messages: int, sizes: tuple[int, ...], rest_ms: int) -> None:
        while messages > 0:
            count = min(messages, self.random.choice(sizes))
            messages -= count
            publications = [self._publication() for _ in range(count)]
            repeated = self.settings.kind == FIFO and self.random.random() < REPEATED_SHARE
            for number in range(2 if repeated else 1):
                await self._publish(publications, again=number > 0)
            await self.process.sleep(self.random.uniform(0, 2 * rest_ms))

    def _publication(self) -> Publication:
        self._bodies += 1
        body = b"p%d" % self._bodies
        if self.settings.kind != FIFO:
            return Publication(body)
        return Publication(body, group=f"g{self.random.randrange(self.groups)}", key=f"k{self._bodies}")

    async def _publish(self, publications: list[Publication], again: bool) -> None:
        deeds = [
            Deed(PUBLISH, self.topic, one.body.decode(), one.group or "", self.world.now_us) for one in publications
        ]
        self.history.deeds += deeds
        if again:
            self.history.again.update(deed.what for deed in deeds)
        try:
            await self.request(lambda server: server.publish(publications, deeds))
        except (AngelhairError, NoAnswer):
            return

    async def meddle(self, queues: list[str], rest_ms: int, deletes: bool) -> None:
        """Subscribes and unsubscribes; now and then deletes the topic and makes it again."""
        while not self.draining:
            await self.process.sleep(self.random.uniform(0.5, 1.5) * rest_ms)
            if self.draining:
                return
            queue = self.random.choice(queues)
            try:
                if deletes and self.random.random() < 0.1:
                    await self._do(DELETE, "", lambda server: server.delete(self.topic))
                elif self.random.random() < 0.6:
                    await self._subscribe(queue)
                else:
                    await self._unsubscribe(queue)
            except TopicNotFound:
                await self.make_topic()
            except (AngelhairError, NoAnswer):
                continue

    async def _subscribe(self, queue: str) -> None:
        await self._do(SUBSCRIBE, queue, lambda server: server.subscribe(self.topic, queue))

    async def _unsubscribe(self, queue: str) -> None:
        await self._do(UNSUBSCRIBE, queue, lambda server: server.unsubscribe(self.topic, queue))

    async def _do(self, verb: str, what: str, work: Callable[[TopicServer], Coroutine[Any, Any, bool]]) -> None:
        deed = Deed(verb, self.topic, what, "", self.world.now_us)
        self.history.deeds.append(deed)
        await self.request(lambda server: server.do(deed, lambda: work(server)))

    async def make_topic(self) -> None:
        """And does not give up."""
        while True:
            try:
                await self._do(CREATE, "", lambda server: server.create(self.topic, self.settings))
                return
            except (AngelhairError, NoAnswer):
                await self.process.sleep(300)

    async def subscribe(self, queue: str) -> None:
        """And does not give up."""
        while True:
            try:
                await self._subscribe(queue)
                return
            except (AngelhairError, NoAnswer):
                await self.process.sleep(300)

    async def make_queue(self, queue: str, settings: QueueSettings) -> None:
        while True:
            try:
                await self.request(lambda server: server.engine.create_queue(ACCOUNT, queue, settings))
                return
            except InvalidRequest:
                # No patience helps against that: the world is not as it was meant.
                raise
            except (AngelhairError, NoAnswer):
                await self.process.sleep(300)

    async def consume(self, queue: str) -> None:
        while True:
            found: list[Any] = []
            try:
                found = await self.request(lambda server: server.take(queue, 10))
            except (AngelhairError, NoAnswer):
                pass
            await self.process.sleep(20 if found else 400)
