"""A timeline, in both colours: what its producers and its workers call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import Any

from angelhair import limits
from angelhair.client.asynchronous_driving import AsyncSender
from angelhair.client.asynchronous_driving import drive as drive_async
from angelhair.client.consuming import OnError
from angelhair.client.driving import Sender, drive
from angelhair.client.retrying import Manner
from angelhair.client.transport import Address
from angelhair.client.values import Draft, PutOutcome, Seconds, Shard
from angelhair.client.verbs import timelines
from angelhair.client.worker import Handler, Worker, fresh_consumer
from angelhair.client.working import WorkRules
from angelhair.model import validate_name


class _Timeline:
    def __init__(self, address: Address, manner: Manner, name: str) -> None:
        self.name = validate_name("queue", name)
        self._address = address
        self._manner = manner

    def worker(
        self,
        handler: Handler,
        *,
        concurrency: int = limits.CONSUMER_CONCURRENCY,
        consumer: str | None = None,
        on_error: OnError | None = None,
    ) -> Worker:
        """One that runs when it is told to; `consumer` is its name, a new one if not given. `on_error` is told of every
        handler that raised, and may return in how many seconds the message shall come again."""
        rules = WorkRules(self.name, fresh_consumer() if consumer is None else consumer, concurrency)
        return Worker(self._address, self._manner, rules, handler, on_error)


class Timeline(_Timeline):
    """For programs that block. Made by `Client.timeline`."""

    def __init__(self, address: Address, manner: Manner, name: str, sender: Sender) -> None:
        super().__init__(address, manner, name)
        self._do: Callable[[Any], Any] = sender.do

    def put(
        self, body: bytes | str, *, due: datetime | None = None, delay: Seconds | None = None,
        content_type: str | None = None,
    ) -> str:
        """Puts one message that is due at a time, after a delay, or now; returns its id. If an answer is lost it is put
        again, and may then be processed twice."""
        plan = timelines.put(self._manner, self.name, body, due=due, delay=delay, content_type=content_type)
        return drive(plan, self._do)

    def put_many(self, messages: Iterable[bytes | str | Draft]) -> list[PutOutcome]:
        """Puts any number of messages; a `Draft` says when each is due."""
        return drive(timelines.put_many(self._manner, self.name, messages), self._do)

    def shards(self) -> list[Shard]:
        """Who works on each shard, and how far it has come."""
        return drive(timelines.shards(self._manner, self.name), self._do)

    def run(
        self, handler: Handler, *, concurrency: int = limits.CONSUMER_CONCURRENCY, consumer: str | None = None,
        on_error: OnError | None = None, signals: bool | None = None,
    ) -> None:
        """Hands what is due to `handler`, a function or a coroutine function, until SIGTERM or SIGINT (unless `signals`
        is False, or this is not the main thread). See `Worker`."""
        worker = self.worker(handler, concurrency=concurrency, consumer=consumer, on_error=on_error)
        worker.run(signals=_wanted(signals))


class AsyncTimeline(_Timeline):
    """For programs on asyncio. Made by `AsyncClient.timeline`."""

    def __init__(self, address: Address, manner: Manner, name: str, sender: AsyncSender) -> None:
        super().__init__(address, manner, name)
        self._do: Callable[[Any], Coroutine[Any, Any, Any]] = sender.do

    async def put(
        self, body: bytes | str, *, due: datetime | None = None, delay: Seconds | None = None,
        content_type: str | None = None,
    ) -> str:
        """As `Timeline.put`."""
        plan = timelines.put(self._manner, self.name, body, due=due, delay=delay, content_type=content_type)
        return await drive_async(plan, self._do)

    async def put_many(self, messages: Iterable[bytes | str | Draft]) -> list[PutOutcome]:
        """As `Timeline.put_many`."""
        return await drive_async(timelines.put_many(self._manner, self.name, messages), self._do)

    async def shards(self) -> list[Shard]:
        """As `Timeline.shards`."""
        return await drive_async(timelines.shards(self._manner, self.name), self._do)

    async def run(
        self, handler: Handler, *, concurrency: int = limits.CONSUMER_CONCURRENCY, consumer: str | None = None,
        on_error: OnError | None = None, signals: bool | None = None,
    ) -> None:
        """As `Timeline.run`; a handler that is a coroutine function runs on this loop."""
        worker = self.worker(handler, concurrency=concurrency, consumer=consumer, on_error=on_error)
        await worker.run_async(signals=_wanted(signals))


def _wanted(signals: bool | None) -> bool:
    """Python allows signal handlers in the main thread only."""
    return threading.current_thread() is threading.main_thread() if signals is None else signals
