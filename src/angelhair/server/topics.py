"""Topics on a server: publishing, and the background that spreads what was published and looks after the outboxes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any

from angelhair import limits
from angelhair.batching.batching import AckOutcome, Batching
from angelhair.batching.fanout import Fanout, Prepare, Put
from angelhair.batching.topics import Publishing, PublishOutcome
from angelhair.engine.engine import PutOutcome
from angelhair.engine.topics.postings import FIFO_OUTBOX, OUTBOX, hidden_account
from angelhair.engine.topics.values import (
    QUEUE,
    NewSubscription,
    Posting,
    Publication,
    Published,
    Render,
    Subscription,
    Target,
    Topic,
    TopicRewrite,
    as_published,
    queue_of,
    shown,
)
from angelhair.errors import InvalidRequest, QueueNotFound, StoreError
from angelhair.model import FIFO, HIDDEN, Ask, Delivery, NewMessage, WantedChange
from angelhair.server.polling import Polling
from angelhair.server.runtime import AsyncioRuntime
from angelhair.server.turns import Turns
from angelhair.server.workers import Workers
from angelhair.settings import ACCOUNT

_log = logging.getLogger(__name__)


class TopicsAtWork:
    """To be made inside a running loop. `render` and `prepare` are the SNS door's, which sets them before the start.
    `count` hears of what becomes of publications."""

    def __init__(self, batching: Batching, put: Put, count: Callable[[str, int], None]) -> None:
        self._batching = batching
        # One of its own: who waits for internal queues is no receive of anybody's.
        self._polling = Polling(batching.receive, batching.engine.due_in_ms)
        self._put_visible = put
        self.verbs = batching.engine.topics
        self.render: Render = as_published
        self.prepare: Prepare = _nothing
        runtime = AsyncioRuntime()
        self._publishing = Publishing(batching, runtime)
        self._fanout = Fanout(batching, self._publishing, runtime, self._put, self._rendered, self, self._prepared)
        self._outboxes: dict[tuple[str, str], _Outbox] = {}
        self._accounts: dict[str, None] = {}
        self._heralds: list[Callable[[str], None]] = []
        self._workers = Workers(batching.engine, hidden_account(ACCOUNT), self._hidden_accounts)
        self.count = count
        self._turns = Turns()
        self.spread_total = 0

    def start(self, account: str) -> None:
        """Spreads what this account publishes, here or on a server that did not live to spread it."""
        if account in self._accounts:
            return
        if not self._accounts:
            self._workers.discover()
        self._accounts[account] = None
        for name in (OUTBOX, FIFO_OUTBOX):
            self._outboxes[account, name] = _Outbox(account, name, self._fanout.step)
        for herald in self._heralds:
            herald(account)

    def on_account(self, herald: Callable[[str], None]) -> None:
        """Tells of every account that is worked for, now and later."""
        self._heralds.append(herald)
        for account in self._accounts:
            herald(account)

    async def _hidden_accounts(self) -> list[str]:
        """Where the internal queues are. What another account's server left when it died is spread here too."""
        accounts = await self._batching.engine.list_accounts()
        for account in accounts:
            self.start(account)
        return [hidden_account(account) for account in accounts]

    async def stop(self) -> None:
        """What is being spread is spread to its end, if that does not take long."""
        await asyncio.gather(*[outbox.stop() for outbox in self._outboxes.values()])
        await self._workers.stop(release=False)

    async def publish(self, account: str, topic: str, publications: Sequence[Publication]) -> list[PublishOutcome]:
        """For each publication its id, which means that it will reach everybody who was subscribed; or the error that
        it met."""
        outcomes = await self._publishing.publish(account, topic, publications)
        confirmed = [outcome for outcome in outcomes if isinstance(outcome, Published)]
        if confirmed:
            self.count("published", len(confirmed))
            self.start(account)
            # Those of a fifo topic have a place.
            name = OUTBOX if confirmed[0].place is None else FIFO_OUTBOX
            self._outboxes[account, name].hurry()
            self._workers.wake(name, hidden_account(account))
        return outcomes

    async def rewrite(self, account: str, topic: str, rewrite: TopicRewrite) -> Topic:
        async with self._turns.of(account, topic):
            return await self.verbs.rewrite(account, topic, rewrite)

    async def subscribe(self, account: str, topic: str, wanted: NewSubscription) -> tuple[Subscription, bool]:
        """As the engine's, for a queue that is there and can take what the topic gives."""
        if wanted.protocol == QUEUE:
            queue = await self._batching.engine.find_queue(*queue_of(wanted.endpoint))
            kind = (await self.verbs.find(account, topic)).settings.kind
            if queue.settings.kind == FIFO and kind != FIFO:
                raise InvalidRequest("queue", f"{queue.name} is a fifo queue, which takes what a fifo topic gives")
        return await self.verbs.subscribe(account, topic, wanted)

    # --- hidden queues ------------------------------------------------------------------------------------------------

    async def receive_hidden(self, account: str, name: str, ask: Ask, wait_seconds: float = 0) -> list[Delivery]:
        """From one of the account's internal queues; nothing when there is none yet."""
        try:
            return await self._polling.receive(hidden_account(account), name, ask, wait_seconds, None)
        except QueueNotFound:
            await asyncio.sleep(min(wait_seconds, limits.FANOUT_LOOK_SECONDS))
            return []

    async def put_hidden(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """Into one of the account's internal queues, which is made when it is first needed."""
        outcomes = await self._publishing.put_hidden(account, name, messages)
        self._polling.wake(hidden_account(account), name, len(messages))
        self._workers.wake(name, hidden_account(account))
        return outcomes

    async def ack_hidden(self, account: str, name: str, receipts: Sequence[str]) -> list[AckOutcome]:
        return await self._batching.ack(hidden_account(account), name, receipts)

    async def change_hidden(self, account: str, name: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        return await self._batching.change(hidden_account(account), name, changes)

    async def _put(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        if not account.startswith(HIDDEN):
            return await self._put_visible(account, name, messages)
        outcomes = await self._batching.put(account, name, messages)
        self._polling.wake(account, name, len(messages))
        self._workers.wake(name, account)
        return outcomes

    async def _prepared(self, items: Sequence[tuple[Posting, Target]]) -> None:
        await self.prepare(items)

    def _rendered(self, posting: Posting, target: Target) -> Any:
        return self.render(posting, target)

    # --- what becomes of publications ---------------------------------------------------------------------------------

    def spread(self, account: str, count: int) -> None:
        self.spread_total += count
        self.count("spread", count)

    def dropped(self, posting: Posting, target: Target, why: str) -> None:
        self.count("dropped", 1)
        _log.warning("a publication of topic %s is dropped for %s: %s", posting.topic, shown(target.endpoint), why)

    def unreadable(self, account: str, why: str) -> None:
        _log.error("a publication of account %s cannot be read, and stays: %s", account, why)

    def waits(self, posting: Posting, target: Target, why: str) -> None:
        self.count("waiting", 1)
        _log.warning("a publication of topic %s waits for %s: %s", posting.topic, shown(target.endpoint), why)


class _Outbox:
    """Several tasks at most, each spreading until there is nothing left; and one that looks now and then."""

    def __init__(self, account: str, name: str, step: Callable[[str, str], Awaitable[int]]) -> None:
        self._account = account
        self._name = name
        self._step = step
        self._working: set[asyncio.Task[None]] = set()
        self._asked = False
        self._stopping = False
        self._looking = _spawned(self._look(), f"looking into {name}")

    def hurry(self) -> None:
        """There is something. When all are at work, the next one that is done looks again."""
        if self._stopping:
            return
        self._asked = True
        if len(self._working) < limits.FANOUTS_AT_ONCE:
            task = _spawned(self._work(), f"spreading {self._name}")
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    async def stop(self) -> None:
        self._stopping = True
        self._looking.cancel()
        if self._working:
            _, late = await asyncio.wait(self._working, timeout=limits.FANOUT_STOP_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        with contextlib.suppress(asyncio.CancelledError):
            await self._looking

    async def _work(self) -> None:
        found = True
        while (found or self._asked) and not self._stopping:
            self._asked = False
            try:
                found = await self._step(self._account, self._name) > 0
            except StoreError as error:
                _log.warning("spreading publications waits for the store: %s", error)
                return
            except Exception:  # noqa: BLE001 - a confirmed publication must not wait for ever for a task that died
                _log.exception("spreading publications met an error that it does not know; it goes on")
                return

    async def _look(self) -> None:
        pause_seconds = limits.FANOUT_LOOK_SECONDS
        while True:
            await asyncio.sleep(pause_seconds)
            idle = not self._working
            if idle:
                self.hurry()
            slower = min(2 * pause_seconds, limits.FANOUT_LOOK_MOST_SECONDS)
            pause_seconds = slower if idle else limits.FANOUT_LOOK_SECONDS


async def _nothing(_items: Sequence[tuple[Posting, Target]]) -> None:
    pass


def _spawned(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work, name=name, context=Context())
