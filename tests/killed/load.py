"""Producers and consumers that work through batching on several servers and write down all that they are told."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence

from angelhair.batching.batching import Batching
from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.store import Store
from angelhair.errors import AngelhairError, OutcomeUnknown, StaleReceipt, StoreError, Unavailable
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from angelhair.server.workers import Workers
from tests.killed.ledger import line

ACCOUNT = "killed"
QUEUE = "queue"

MESSAGES_PER_REQUEST = 5
"""At most; so that some requests span two buckets."""

NAP_SECONDS = 0.01
"""Between two looks at an empty queue, and after an error: a client that spins would only heat the machine."""

FORGOTTEN = 0.05
"""The share of receives whose consumer dies before it acks: what it had must come back."""

Tell = Callable[[str], None]


class Server:
    """One server of several on the same store. To be made inside a running loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.engine = Engine(store, RandomIdentities(), SystemClock())
        self.batching = Batching(self.engine, AsyncioRuntime())
        self.workers = Workers(self.engine, ACCOUNT)

    async def start(self, settings: QueueSettings, lease_ms: int | None = None) -> None:
        """`lease_ms`: servers that live for moments need leases that lapse in moments."""
        queue, _ = await self.engine.create_queue(ACCOUNT, QUEUE, settings)
        if lease_ms is not None:
            for number in queue.lanes:
                lease = self.engine.memory.worker(self.engine.memory.lane(queue, number)).lease
                lease.duration_ms, lease.beat_every_ms = lease_ms, lease_ms // 4
        self.workers.start([QUEUE])

    async def stop(self) -> None:
        await self.workers.stop()
        await self.store.close()


class Load:
    """Runs until it is stopped. `run_name` keeps the bodies of one load apart from another's."""

    def __init__(self, servers: Sequence[Server], tell: Tell, run_name: str, seed: int = 0) -> None:
        self._servers = servers
        self._tell = tell
        self._run_name = run_name
        self._dice = random.Random(seed)
        self._stopping = asyncio.Event()
        self._producers: list[asyncio.Task[None]] = []
        self._consumers: list[asyncio.Task[None]] = []

    def start(self, producers: int, consumers: int) -> None:
        for number in range(producers):
            self._producers.append(asyncio.create_task(self._produce(number)))
        for number in range(consumers):
            self._consumers.append(asyncio.create_task(self._consume(number)))

    async def stop_producing(self) -> None:
        self._stopping.set()
        await asyncio.gather(*self._producers)

    async def stop(self) -> None:
        await self.stop_producing()
        await asyncio.gather(*self._consumers)

    def check(self) -> None:
        """Raises what ended a client early: an error that is none of the engine's."""
        for task in (*self._producers, *self._consumers):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _produce(self, number: int) -> None:
        batching = self._servers[number % len(self._servers)].batching
        bodies = (f"{self._run_name}/{number}/{count}" for count in itertools.count())
        while not self._stopping.is_set():
            await put(batching, list(itertools.islice(bodies, self._dice.randint(1, MESSAGES_PER_REQUEST))), self._tell)

    async def _consume(self, number: int) -> None:
        batching = self._servers[number % len(self._servers)].batching
        while not self._stopping.is_set():
            await receive_and_ack(batching, f"{self._run_name}/{number}", self._dice, self._tell, FORGOTTEN)


async def put(batching: Batching, bodies: list[str], tell: Tell) -> None:
    for body in bodies:
        tell(line("putting", body))
    try:
        outcomes = await batching.put(ACCOUNT, QUEUE, [NewMessage(body.encode()) for body in bodies])
    except StoreError as error:
        outcomes = [error] * len(bodies)
    for body, outcome in zip(bodies, outcomes, strict=True):
        if isinstance(outcome, MessageId):
            tell(line("put", body, outcome))
        elif isinstance(outcome, OutcomeUnknown):
            tell(line("unknown", body))
        elif isinstance(outcome, Unavailable):
            tell(line("refused", body))
        else:
            raise outcome
    if any(isinstance(outcome, AngelhairError) for outcome in outcomes):
        await asyncio.sleep(NAP_SECONDS)


async def receive_and_ack(
    batching: Batching, client: str, dice: random.Random, tell: Tell, forgotten: float = 0.0
) -> int:
    """One receive, and the acks of what it brought unless that is forgotten; how many messages it brought."""
    tell(line("receiving", client))
    try:
        deliveries = await batching.receive(ACCOUNT, QUEUE, Ask(dice.randint(1, 2 * MESSAGES_PER_REQUEST)))
    except StoreError:
        deliveries = []
    for delivery in deliveries:
        tell(line("got", client, delivery.body.decode(), delivery.id, delivery.deliveries))
    if not deliveries:
        await asyncio.sleep(NAP_SECONDS)
    elif dice.random() >= forgotten:
        await _ack(batching, deliveries, tell)
    return len(deliveries)


async def _ack(batching: Batching, deliveries: list[Delivery], tell: Tell) -> None:
    for delivery in deliveries:
        tell(line("acking", delivery.body.decode(), delivery.deliveries))
    try:
        outcomes = await batching.ack(ACCOUNT, QUEUE, [delivery.receipt for delivery in deliveries])
    except StoreError as error:
        outcomes = [error] * len(deliveries)
    for delivery, outcome in zip(deliveries, outcomes, strict=True):
        if outcome is None:
            verb = "acked"
        elif isinstance(outcome, StaleReceipt):
            verb = "stale"
        elif isinstance(outcome, OutcomeUnknown):
            verb = "perhaps"
        elif isinstance(outcome, Unavailable):
            verb = "unacked"
        else:
            raise outcome
        tell(line(verb, delivery.body.decode(), delivery.deliveries))
