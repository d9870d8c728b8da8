"""What every door calls: the engine's verbs through batching, waiting receives, and the background kept informed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from angelhair.batching.batching import AckOutcome, Batching
from angelhair.clock import Clock
from angelhair.engine.catalog import Queue, Rewrite
from angelhair.engine.engine import NO_NOTES, Engine, PutOutcome
from angelhair.engine.identities import Identities
from angelhair.engine.members import Presence
from angelhair.engine.store import Store
from angelhair.engine.timeline.consumer import Share
from angelhair.errors import RequestError
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings, WantedChange
from angelhair.server.polling import Look, Patience, Polling
from angelhair.server.runtime import AsyncioRuntime
from angelhair.server.topics import TopicsAtWork
from angelhair.server.turns import Turns
from angelhair.server.workers import Workers
from angelhair.settings import ACCOUNT


def label(account: str, name: str) -> str:
    """What a queue is called in metrics: as the default account's always were, by name alone. No name has a slash."""
    return name if account == ACCOUNT else f"{account}/{name}"


class Listener(Protocol):
    """Hears of what a service does. Queues have the names that `label` gives them."""

    def put(self, queue: str, count: int) -> None: ...

    def received(self, queue: str, deliveries: Sequence[Delivery]) -> None: ...

    def acked(self, queue: str, count: int, refused: int = 0) -> None: ...

    def changed(self, queue: str, count: int) -> None: ...

    def forget_queue(self, queue: str) -> None: ...

    def publications(self, event: str, count: int) -> None: ...


class Silence:
    """For who has nobody to tell."""

    def put(self, queue: str, count: int) -> None:
        pass

    def received(self, queue: str, deliveries: Sequence[Delivery]) -> None:
        pass

    def acked(self, queue: str, count: int, refused: int = 0) -> None:
        pass

    def changed(self, queue: str, count: int) -> None:
        pass

    def forget_queue(self, queue: str) -> None:
        pass

    def publications(self, event: str, count: int) -> None:
        pass


class Service:
    """One server's queues. To be made inside a running loop."""

    def __init__(
        self,
        store: Store,
        identities: Identities,
        clock: Clock,
        engine: Engine | None = None,
        listener: Listener | None = None,
    ) -> None:
        """`engine`: one that is measured, in place of a plain one. `listener` hears of what is put, received, acked."""
        self.store = store
        self.clock = clock
        self._listener = listener or Silence()
        self.engine = engine or Engine(store, identities, clock)
        self.batching = Batching(self.engine, AsyncioRuntime())
        self.polling = Polling(self.batching.receive, self.engine.due_in_ms)
        self.workers = Workers(self.engine, ACCOUNT)
        self.topics = TopicsAtWork(self.batching, self.put, self._listener.publications)
        self._turns = Turns()

    def start(self, presence: Presence | None = None) -> None:
        """`presence`: what other servers are told of this one; None if it is none of them."""
        if presence is not None:
            self.workers.announce(presence)
        self.workers.discover()
        self.topics.start(ACCOUNT)

    async def stop(self) -> None:
        """After the doors have closed."""
        await self.topics.stop()
        await self.workers.stop()
        await self.store.close()

    # --- queues -----------------------------------------------------------------------------------------------------

    async def create_queue(
        self, account: str, name: str, settings: QueueSettings, notes: Mapping[str, Any] = NO_NOTES
    ) -> tuple[Queue, bool]:
        made = await self.engine.create_queue(account, name, settings, notes)
        self.workers.start([name], account)
        return made

    async def change_queue(self, account: str, name: str, changes: Mapping[str, Any]) -> Queue:
        async with self._turns.of(account, name):
            changed = await self.engine.change_queue(account, name, changes)
        self.workers.wake(name, account)
        return changed

    async def rewrite_queue(self, account: str, name: str, rewrite: Rewrite) -> Queue:
        async with self._turns.of(account, name):
            changed = await self.engine.rewrite_queue(account, name, rewrite)
        self.workers.wake(name, account)
        return changed

    async def delete_queue(self, account: str, name: str) -> None:
        async with self._turns.of(account, name):
            await self.engine.delete_queue(account, name)
        self._listener.forget_queue(label(account, name))

    async def purge(self, account: str, name: str) -> None:
        await self.engine.purge(account, name)
        self.workers.wake(name, account)

    async def redrive(self, account: str, name: str, destination: str | None, most: int) -> int:
        moved = await self.engine.redrive(account, name, destination, most)
        if destination is not None:
            self._something_visible(account, destination, moved)
        elif moved:
            # Each went back to where it came from: whoever waits there looks.
            self.polling.wake_all(account)
        return moved

    # --- messages ---------------------------------------------------------------------------------------------------

    async def put(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        outcomes = await self.batching.put(account, name, messages)
        confirmed = sum([isinstance(outcome, MessageId) for outcome in outcomes])
        self._listener.put(label(account, name), confirmed)
        self._something_visible(account, name, confirmed)
        return outcomes

    async def receive(
        self, account: str, name: str, ask: Ask, wait_seconds: float = 0, patience: Patience | None = None,
        look: Look | None = None,
    ) -> list[Delivery]:
        """`patience` lets the caller end the waiting sooner; `look` may find less than there is."""
        found = await self.polling.receive(account, name, ask, wait_seconds, patience, look)
        if found:
            self._listener.received(label(account, name), found)
            self.workers.wake(name, account)
        return found

    async def ack(
        self, account: str, name: str, receipts: Sequence[str], in_flight: bool = False
    ) -> list[AckOutcome]:
        """`in_flight`: only while the message is hidden."""
        outcomes = await self.batching.ack(account, name, receipts, in_flight)
        acked = outcomes.count(None)
        refused = 0 if acked == len(outcomes) else sum(isinstance(outcome, RequestError) for outcome in outcomes)
        self._listener.acked(label(account, name), acked, refused)
        self.workers.wake(name, account)
        return outcomes

    async def change(self, account: str, name: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        """Extends, releases (visibility 0) or rewrites delivered messages."""
        outcomes = await self.batching.change(account, name, changes)
        released = sum(
            outcome is None and change.visibility_ms == 0 for outcome, change in zip(outcomes, changes, strict=True)
        )
        self._listener.changed(label(account, name), sum(outcome is None for outcome in outcomes))
        self._something_visible(account, name, released)
        return outcomes

    # --- timelines --------------------------------------------------------------------------------------------------

    async def touch_consumer(self, account: str, name: str, consumer: str) -> Share:
        """A consumer is there: it keeps its shards, and takes its share of those that are free."""
        share = await self.engine.touch_consumer(account, name, consumer)
        self.workers.wake(name, account)
        return share

    async def leave_consumer(self, account: str, name: str, consumer: str) -> None:
        await self.engine.leave_consumer(account, name, consumer)
        self.workers.wake(name, account)

    def _something_visible(self, account: str, name: str, messages: int) -> None:
        if messages:
            self.polling.wake(account, name, messages)
            self.workers.wake(name, account)
