"""The client for asyncio: verbs are plans, driven on the running loop. Any number of its tasks may share one."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from angelhair import limits
from angelhair.client.asynchronous_consumer import AsyncConsumer
from angelhair.client.asynchronous_driving import AsyncSender, drive
from angelhair.client.consuming import OnError, Rules
from angelhair.client.plans import Plan
from angelhair.client.retrying import Manner, Retry
from angelhair.client.timeline import AsyncTimeline
from angelhair.client.transport import DEFAULT_URL, Address
from angelhair.client.values import Message, Seconds
from angelhair.client.verbs import deliveries, operating, puts
from angelhair.client.verbs import queues as catalog
from angelhair.client.verbs import topics as subjects
from angelhair.client.verbs.queues import Page

P = ParamSpec("P")
T = TypeVar("T")


def _verb(
    plan: Callable[Concatenate[Manner, P], Plan[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @wraps(plan)
    async def method(client: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await drive(plan(client._manner, *args, **kwargs), client._sender.do)

    return method


def _pages(
    plan: Callable[Concatenate[Manner, P], Plan[Page[T]]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    @wraps(plan)
    async def method(client: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        following: Plan[Page[T]] | None = plan(client._manner, *args, **kwargs)
        while following is not None:
            items, following = await drive(following, client._sender.do)
            for item in items:
                yield item

    return method


class AsyncClient:
    """A server's queues, for programs on asyncio. Close it, or use it in an `async with` statement."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        timeout: Seconds = limits.CLIENT_TIMEOUT_SECONDS,
        retry: Retry | None = Retry(),  # noqa: B008 - a value that never changes
        headers: Mapping[str, str] | None = None,
        verify: ssl.SSLContext | bool = True,
        key_id: str | None = None,
        secret: str | None = None,
    ) -> None:
        """As `Client`."""
        self._address = Address(url, headers, verify, key_id, secret)
        self._manner = Manner(timeout, retry)
        self._sender = AsyncSender(self._address)

    create_queue = _verb(catalog.create_queue)
    queue = _verb(catalog.queue)
    change_queue = _verb(catalog.change_queue)
    delete_queue = _verb(catalog.delete_queue)
    queues = _pages(catalog.queues)
    purge = _verb(catalog.purge)
    put = _verb(puts.put)
    put_many = _verb(puts.put_many)
    receive = _verb(deliveries.receive)
    ack = _verb(deliveries.ack)
    ack_many = _verb(deliveries.ack_many)
    extend = _verb(deliveries.extend)
    release = _verb(deliveries.release)
    change = _verb(deliveries.change)
    peek = _verb(operating.peek)
    dead_letters = _verb(operating.dead_letters)
    redrive = _verb(operating.redrive)
    pointers = _verb(operating.pointers)
    buckets = _verb(operating.buckets)
    move_back = _verb(operating.move_back)
    cluster = _verb(operating.cluster)
    create_topic = _verb(subjects.create_topic)
    topic = _verb(subjects.topic)
    delete_topic = _verb(subjects.delete_topic)
    topics = _pages(subjects.topics)
    subscribe = _verb(subjects.subscribe)
    unsubscribe = _verb(subjects.unsubscribe)
    publish = _verb(subjects.publish)

    def consumer(
        self,
        queue: str,
        handler: Callable[[Message], Awaitable[object]],
        *,
        concurrency: int = limits.CONSUMER_CONCURRENCY,
        visibility: Seconds = limits.CONSUMER_VISIBILITY_SECONDS,
        wait: Seconds = limits.CONSUMER_WAIT_SECONDS,
        on_error: OnError | None = None,
    ) -> AsyncConsumer:
        """A loop that hands messages to `handler`, each in a task; see `AsyncConsumer`."""
        rules = Rules(queue, concurrency, visibility, wait)
        return AsyncConsumer(self._address, self._manner, self._sender, rules, handler, on_error)

    def timeline(self, name: str) -> AsyncTimeline:
        """A queue of the kind timeline: puts that are due at a time, and workers that share its shards."""
        return AsyncTimeline(self._address, self._manner, name, self._sender)

    async def close(self) -> None:
        await self._sender.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
