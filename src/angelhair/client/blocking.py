"""The client for threads: verbs are plans, driven in the caller's thread. Any number of threads may share one."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from angelhair import limits
from angelhair.client.blocking_consumer import Consumer
from angelhair.client.consuming import OnError, Rules
from angelhair.client.driving import Sender, drive
from angelhair.client.plans import Plan
from angelhair.client.retrying import Manner, Retry
from angelhair.client.timeline import Timeline
from angelhair.client.transport import DEFAULT_URL, Address
from angelhair.client.values import Message, Seconds
from angelhair.client.verbs import deliveries, operating, puts
from angelhair.client.verbs import queues as catalog
from angelhair.client.verbs import topics as subjects
from angelhair.client.verbs.queues import Page

P = ParamSpec("P")
T = TypeVar("T")


def _verb(plan: Callable[Concatenate[Manner, P], Plan[T]]) -> Callable[Concatenate[Client, P], T]:
    @wraps(plan)
    def method(client: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return drive(plan(client._manner, *args, **kwargs), client._sender.do)

    return method


def _pages(plan: Callable[Concatenate[Manner, P], Plan[Page[T]]]) -> Callable[Concatenate[Client, P], Iterator[T]]:
    @wraps(plan)
    def method(client: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        following: Plan[Page[T]] | None = plan(client._manner, *args, **kwargs)
        while following is not None:
            items, following = drive(following, client._sender.do)
            yield from items

    return method


class Client:
    """A server's queues, for programs that block. Close it, or use it in a `with` statement."""

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
        """`retry`: None sends every request once. `verify`: an ssl.SSLContext that knows the server's certificate.
        `key_id` and `secret`: an access key; by default that of ANGELHAIR_KEY_ID and ANGELHAIR_SECRET, if they are
        set."""
        self._address = Address(url, headers, verify, key_id, secret)
        self._manner = Manner(timeout, retry)
        self._sender = Sender(self._address)

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
        handler: Callable[[Message], object],
        *,
        concurrency: int = limits.CONSUMER_CONCURRENCY,
        visibility: Seconds = limits.CONSUMER_VISIBILITY_SECONDS,
        wait: Seconds = limits.CONSUMER_WAIT_SECONDS,
        on_error: OnError | None = None,
    ) -> Consumer:
        """A loop that hands messages to `handler`, each in a thread; see `Consumer`."""
        rules = Rules(queue, concurrency, visibility, wait)
        return Consumer(self._address, self._manner, self._sender, rules, handler, on_error)

    def timeline(self, name: str) -> Timeline:
        """A queue of the kind timeline: puts that are due at a time, and workers that share its shards."""
        return Timeline(self._address, self._manner, name, self._sender)

    def close(self) -> None:
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
