"""Simulated servers with topics: engine, batching and fan-out, unchanged, and the loops around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from angelhair.batching.batching import Batching
from angelhair.batching.fanout import Fanout
from angelhair.batching.topics import Publishing
from angelhair.engine.engine import Engine, PutOutcome
from angelhair.engine.topics.postings import FIFO_OUTBOX, OUTBOX, hidden_account
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
from angelhair.errors import AngelhairError, QueueNotFound, StoreError
from angelhair.model import Ask, Delivery, MessageId, NewMessage
from angelhair.simulation.process import Process
from angelhair.simulation.servers import ACCOUNT, BURY_SHARE, judged
from angelhair.simulation.topic_history import Deed, TopicHistory
from angelhair.simulation.world import World

LOOK_MS = 500
"""How often an outbox is looked into for what others left."""


class TopicServer:
    """What one incarnation of a server process runs."""

    def __init__(self, world: World, process: Process, queues: Sequence[str], history: TopicHistory) -> None:
        self._world = world
        self._process = process
        self._history = history
        self.engine = Engine(process.store, world.identities, process.clock)
        self.batching = Batching(self.engine, process.runtime)
        self.publishing = Publishing(self.batching, process.runtime)
        self.fanout = Fanout(
            self.batching, self.publishing, process.runtime, self._put, as_published, self
        )
        hidden = hidden_account(ACCOUNT)
        for account, name in [(hidden, OUTBOX), (hidden, FIFO_OUTBOX), *((ACCOUNT, queue) for queue in queues)]:
            process.spawn(self._work(account, name))
        for name in (OUTBOX, FIFO_OUTBOX):
            process.spawn(self._look(name))
        process.spawn(self._bury())

    async def _work(self, account: str, queue: str) -> None:
        while True:
            try:
                pause_ms = await self.engine.step(account, queue)
            except (StoreError, QueueNotFound):
                pause_ms = 1_000
            await self._process.sleep(pause_ms)

    async def _look(self, outbox: str) -> None:
        while True:
            await self._spread(outbox)
            await self._process.sleep(LOOK_MS)

    async def _spread(self, outbox: str) -> None:
        try:
            while await self.fanout.step(ACCOUNT, outbox):
                continue
        except StoreError:
            return

    async def _bury(self) -> None:
        while True:
            await self._process.sleep(1_000)
            if self._world.random.random() < BURY_SHARE:
                try:
                    await self.engine.bury_step()
                except StoreError:
                    continue

    async def _put(self, account: str, queue: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        names = [(queue, message.body.decode()) for message in messages]
        self._history.plain.update(
            name for name, message in zip(names, messages, strict=True) if message.key is None
        )
        outcomes = await self.batching.put(account, queue, messages)
        for name, message, outcome in zip(names, messages, outcomes, strict=True):
            if message.key is not None and isinstance(outcome, MessageId):
                self._history.keyed.setdefault(name, set()).add(str(outcome))
        return outcomes

    # --- what clients ask for -----------------------------------------------------------------------------------------

    async def publish(self, publications: Sequence[Publication], deeds: Sequence[Deed]) -> None:
        self._history.publishing += 1
        try:
            outcomes = await self.publishing.publish(ACCOUNT, deeds[0].topic, publications)
            for deed, outcome in zip(deeds, outcomes, strict=True):
                deed.outcome = judged(outcome)
        except AngelhairError as error:
            for deed in deeds:
                deed.outcome = judged(error)
            return
        finally:
            self._history.publishing -= 1
            for deed in deeds:
                deed.ended_us = self._world.now_us
        confirmed = [outcome for outcome in outcomes if isinstance(outcome, Published)]
        if confirmed:
            self._process.spawn(self._spread(OUTBOX if confirmed[0].place is None else FIFO_OUTBOX))

    async def do(self, deed: Deed, work: Callable[[], Awaitable[bool]]) -> None:
        """`work` says whether it had something to do."""
        try:
            deed.effect = await work()
            deed.outcome = judged(None)
        except AngelhairError as error:
            deed.outcome = judged(error)
            raise
        finally:
            deed.ended_us = self._world.now_us

    async def create(self, topic: str, settings: TopicSettings) -> bool:
        _, made = await self.engine.topics.create(ACCOUNT, topic, settings)
        return made

    async def delete(self, topic: str) -> bool:
        await self.engine.topics.delete(ACCOUNT, topic)
        return True

    async def subscribe(self, topic: str, queue: str) -> bool:
        wanted = NewSubscription(QUEUE, queue_endpoint(ACCOUNT, queue))
        _, made = await self.engine.topics.subscribe(ACCOUNT, topic, wanted)
        return made

    async def unsubscribe(self, topic: str, queue: str) -> bool:
        for one in await self.engine.topics.subscriptions(ACCOUNT, topic):
            if one.endpoint == queue_endpoint(ACCOUNT, queue):
                return await self.engine.topics.unsubscribe(ACCOUNT, topic, one.id)
        return False

    async def take(self, queue: str, count: int) -> list[Delivery]:
        """Receives and acks."""
        found = await self.batching.receive(ACCOUNT, queue, Ask(count))
        for delivery in found:
            key = (queue, delivery.body.decode())
            self._history.arrived.setdefault(key, set()).add(str(delivery.id))
        if found:
            await self.batching.ack(ACCOUNT, queue, [delivery.receipt for delivery in found])
        return found

    # --- what the fan-out tells ---------------------------------------------------------------------------------------

    def spread(self, account: str, count: int) -> None:
        pass

    def waits(self, posting: Posting, target: Target, why: str) -> None:
        pass

    def dropped(self, posting: Posting, target: Target, why: str) -> None:
        self._history.dropped.append(f"{posting.body.decode()} for {target.endpoint}: {why}")

    def unreadable(self, account: str, why: str) -> None:
        self._history.dropped.append(why)
