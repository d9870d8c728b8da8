"""Clients as the bars of cost have them: many at once, one message a request, through batching; and what they cost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple, TypeVar

from angelhair.batching.batching import Batching
from angelhair.clock import Clock, SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.identities import Identities
from angelhair.engine.store import Store
from angelhair.errors import StoreError
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from angelhair.server.workers import Workers
from angelhair.stores.counting import CountingStore, Counts

ACCOUNT = "costs"
QUEUE = "queue"

CLIENTS = 64
"""As the bar has it."""

BODY = b"x" * 200

T = TypeVar("T")


class SeededIdentities:
    """The same ones in every run: in which partition a message lies is drawn from them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def fresh(self) -> str:
        return self._random.randbytes(16).hex()

    def secret(self) -> bytes:
        return self._random.randbytes(16)


class Server:
    """One server on a store that counts. To be made inside a running loop."""

    def __init__(self, store: Store, clock: Clock | None = None, identities: Identities | None = None) -> None:
        self.store = CountingStore(store)
        self.engine = Engine(self.store, identities or RandomIdentities(), clock or SystemClock())
        self.batching = Batching(self.engine, AsyncioRuntime())
        self.workers = Workers(self.engine, ACCOUNT)

    async def create(self, settings: QueueSettings) -> None:
        await self.engine.create_queue(ACCOUNT, QUEUE, settings)

    # What the store does not answer in time, as a real cluster on a busy machine may, costs and brings nothing: the
    # verbs say how many messages came of their requests.

    async def put(self, count: int) -> int:
        confirmed = 0

        async def one(_: int) -> None:
            nonlocal confirmed
            (outcome,) = await self.batching.put(ACCOUNT, QUEUE, [NewMessage(BODY)])
            if isinstance(outcome, MessageId):
                confirmed += 1
            elif not isinstance(outcome, StoreError):
                raise outcome

        await _share(count, one)
        return confirmed

    async def receive(self, count: int) -> list[str]:
        """Receipts of as many messages; the queue must hold them, and no request may come back empty."""
        receipts: list[str] = []

        async def one(_: int) -> None:
            (delivery,) = await self.batching.receive(ACCOUNT, QUEUE, Ask(1))
            receipts.append(delivery.receipt)

        await _share(count, one)
        return receipts

    async def ack(self, receipts: list[str]) -> int:
        acked = 0

        async def one(number: int) -> None:
            nonlocal acked
            (outcome,) = await self.batching.ack(ACCOUNT, QUEUE, [receipts[number]])
            if outcome is None:
                acked += 1
            elif not isinstance(outcome, StoreError):
                raise outcome

        await _share(len(receipts), one)
        return acked

    async def counted(self, work: Coroutine[Any, Any, T]) -> tuple[T, Counts]:
        before = self.store.counts
        result = await work
        return result, self.store.counts - before


async def _share(count: int, one: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    """Every client does the next piece as soon as it is done with its last."""
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            with contextlib.suppress(StoreError):
                await one(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(CLIENTS, count)):
            group.create_task(client())


class Cost(NamedTuple):
    """Of one message, on average."""

    changes: float
    reads: float
    writes: float
    rows_changed: float
    rows_read: float
    rows_written: float
    drops: float

    @classmethod
    def of(cls, counts: Counts, messages: int) -> Cost:
        return cls(*(getattr(counts, name) / messages for name in cls._fields))

    def __str__(self) -> str:
        return (
            f"{self.changes:.4f} conditional writes, {self.reads:.4f} reads ({self.rows_read:.2f} rows), "
            f"{self.writes:.4f} blind writes"
        )
