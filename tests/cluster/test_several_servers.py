"""A1, A12 from outside: whole servers, as anybody starts them, that share one keyspace; and one that is killed."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import pytest

from angelhair import AsyncClient
from angelhair.engine import catalog, places
from angelhair.engine.store import Span
from angelhair.errors import StaleReceipt, StoreError
from angelhair.settings import ACCOUNT
from angelhair.stores.cassandra import CassandraStore
from bench.metrics import total
from bench.processes import Running, on_cassandra
from cluster import CassandraCluster
from cluster.testing import connected_store, fresh_keyspace

SERVERS = 4
MESSAGES = 240
BATCH = 10

CLIENTS_EACH = 2
"""Producers, and as many consumers, at each server."""

PROGRESS = 30
"""Puts and acks that each server confirms before the kill, and each survivor after it."""

PATIENCE_SECONDS = 60
"""For what must happen at last: several leases long, however busy the machine is."""

POLL_SECONDS = 0.05

COUNTED = 40
UNCOUNTED = 10
"""Messages of each server whose costs are counted, and those that keep its lane from running dry."""

WRITES = (("change", "sequences"), ("write", "bodies"), ("change", "states"))
"""What a message costs that no background work adds to, however long a busy machine takes: reservations, bodies, claims
and acks. `make bench` counts everything."""

MEASUREMENTS = 5
"""Until one in which no lane moved."""

GROWTH = 1.10
"""Of writes per message, at most, from one server to several."""

VISIBILITY_SECONDS = 4.0
"""Shorter than a lease: what the consumers of a killed server held comes back before its background work is taken."""


@pytest.fixture(scope="module")
def servers(cassandra_cluster: CassandraCluster, keyspace: str) -> Iterator[list[Running]]:
    with on_cassandra(cassandra_cluster.contact_points, keyspace, SERVERS) as running:
        yield running


@pytest.fixture
def own_keyspace(cassandra_cluster: CassandraCluster) -> str:
    """Where no other test's servers work: they would take their share of the lanes, and of the background work."""
    return asyncio.run(fresh_keyspace(cassandra_cluster))


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not happened():
            await asyncio.sleep(POLL_SECONDS)


@pytest.mark.parametrize("count", [2, SERVERS])
def test_a12_in_the_quiet_case_every_message_is_seen_once(servers: list[Running], count: int) -> None:
    """Producers and consumers at every server at once; nobody dies, no time-out passes."""
    queue = f"quiet-{uuid.uuid4().hex}"
    put: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    acked = 0

    async def produce(client: AsyncClient, messages: int) -> None:
        for _ in range(messages // BATCH):
            for outcome in await client.put_many(queue, [f"{uuid.uuid4()}" for _ in range(BATCH)]):
                assert outcome.id is not None
                put[outcome.id] += 1

    async def consume(client: AsyncClient) -> None:
        nonlocal acked
        while acked < MESSAGES:
            given = await client.receive(queue, BATCH, wait=1)
            seen.update(message.id for message in given)
            if given:
                assert await client.ack_many(given) == []
                acked += len(given)

    async def test() -> None:
        clients = [AsyncClient(server.url) for server in servers[:count]]
        await clients[0].create_queue(queue)
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(produce(client, MESSAGES // count))
                tasks.create_task(consume(client))
        for client in clients:
            assert await client.receive(queue, BATCH) == []
            await client.close()

    asyncio.run(test())
    assert len(put) == MESSAGES
    assert seen == put


async def lanes_shared_out(servers: list[Running]) -> None:
    """Waits until every server holds one lane, and knows it: one whose lease was taken hears of it at its next beat."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while [server.metrics().leases_held for server in servers] != [1] * len(servers):
            await asyncio.sleep(POLL_SECONDS)


async def cost(servers: list[Running], store: CassandraStore) -> float:
    """Writes of one message from put to ack, lost ones included, when every server has the same to do.

    Of servers that each keep their lane. On a machine that is too busy a lease can lapse, and its lane moves: then it
    is measured again.
    """
    async with AsyncExitStack() as open_clients:
        clients = [
            await open_clients.enter_async_context(AsyncClient(server.url, retry=None)) for server in servers
        ]
        for _ in range(MEASUREMENTS):
            queue = f"cost-{uuid.uuid4().hex}"
            await clients[0].create_queue(queue, lanes=len(servers))
            await lanes_shared_out(servers)
            before = await fences(store, queue)
            found = await _cost_in(queue, servers, clients)
            stayed = await fences(store, queue) == before
            await clients[0].delete_queue(queue)
            if stayed:
                return found
    raise AssertionError(f"lanes moved during each of {MEASUREMENTS} measurements")


async def _cost_in(queue: str, servers: list[Running], clients: list[AsyncClient]) -> float:
    async def put(client: AsyncClient) -> None:
        for _ in range(COUNTED + UNCOUNTED):
            await client.put(queue, "x")

    async def take(client: AsyncClient) -> None:
        for _ in range(COUNTED):
            (message,) = await client.receive(queue, wait=PATIENCE_SECONDS)
            await client.ack(message)

    async def operations(work: Callable[[AsyncClient], Coroutine[None, None, None]]) -> int:
        before = total([server.metrics() for server in servers])
        await asyncio.gather(*(work(client) for client in clients))
        made = (total([server.metrics() for server in servers]) - before).operations
        return sum(made[operation] for operation in WRITES)

    puts = await operations(put) / (COUNTED + UNCOUNTED)
    takes = await operations(take) / COUNTED
    return (puts + takes) / len(servers)


def test_a12_a_message_costs_no_more_with_more_servers(cassandra_cluster: CassandraCluster, own_keyspace: str) -> None:
    async def test(servers: list[Running]) -> float:
        store = await connected_store(cassandra_cluster, own_keyspace)
        try:
            return await cost(servers, store)
        finally:
            await store.close()

    costs = {}
    for count in (1, 2, SERVERS):
        with on_cassandra(cassandra_cluster.contact_points, own_keyspace, count) as running:
            costs[count] = asyncio.run(test(running))
    print(costs)
    assert costs[2] <= GROWTH * costs[1]
    assert costs[SERVERS] <= GROWTH * costs[1]


class Load:
    """Producers and consumers at every server, and what they were told."""

    def __init__(self, queue: str, clients: list[AsyncClient]) -> None:
        self._queue = queue
        self._clients = clients
        self._tasks: set[asyncio.Task[None]] = set()
        self._producing = True
        self._consuming = True
        self.gone: set[int] = set()
        """Servers that were killed: whoever meets an error there ends."""
        self.confirmed: list[set[str]] = [set() for _ in clients]
        """Bodies, by server."""
        self.received: Counter[str] = Counter()
        self.acked: list[set[str]] = [set() for _ in clients]
        self.perhaps_acked: set[str] = set()

    async def __aenter__(self) -> Self:
        for number, client in enumerate(self._clients):
            for work in (self._produce, self._consume):
                for _ in range(CLIENTS_EACH):
                    self._tasks.add(asyncio.create_task(work(number, client)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producing = self._consuming = False
        outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None:
            assert [outcome for outcome in outcomes if outcome is not None] == []

    def stop_producing(self) -> None:
        self._producing = False

    @property
    def all_confirmed(self) -> set[str]:
        return set().union(*self.confirmed)

    @property
    def settled(self) -> set[str]:
        return self.perhaps_acked.union(*self.acked)

    async def progress(self, servers: Iterable[int], more: int) -> None:
        """Waits until each of these has confirmed so many more puts and acks."""
        servers = list(servers)
        wanted = [(len(self.confirmed[one]) + more, len(self.acked[one]) + more) for one in servers]
        await until(
            lambda: all(
                len(self.confirmed[one]) >= puts and len(self.acked[one]) >= acks
                for one, (puts, acks) in zip(servers, wanted, strict=True)
            )
        )

    async def _produce(self, number: int, client: AsyncClient) -> None:
        while self._producing and number not in self.gone:
            body = uuid.uuid4().hex
            try:
                await client.put(self._queue, body)
                self.confirmed[number].add(body)
            except StoreError:
                # Not confirmed: nothing was promised.
                await asyncio.sleep(POLL_SECONDS)

    async def _consume(self, number: int, client: AsyncClient) -> None:
        while self._consuming and number not in self.gone:
            try:
                given = await client.receive(self._queue, BATCH, wait=1)
            except StoreError:
                await asyncio.sleep(POLL_SECONDS)
                continue
            self.received.update(message.text for message in given)
            for message in given:
                try:
                    await client.ack(message)
                    self.acked[number].add(message.text)
                except StaleReceipt:
                    # Too slow, and somebody else has it by now.
                    continue
                except StoreError:
                    self.perhaps_acked.add(message.text)


async def fences(store: CassandraStore, queue: str) -> list[object]:
    """Of each lane, the number of its background worker's lease; it changes when the lane gets another worker."""
    found = await catalog.load(store, ACCOUNT, queue)
    assert found is not None
    leases = await store.read([Span(places.leases(found.incarnation, lane)) for lane in sorted(found.lanes)])
    return [part.rows[0].values["fence"] if part.rows else None for part in leases]


def test_a01_a12_one_of_three_killed_under_load(cassandra_cluster: CassandraCluster, own_keyspace: str) -> None:
    """kill -9 of the server that does the queue's background work: nothing confirmed is lost, the others go on."""

    async def test(servers: list[Running], store: CassandraStore) -> None:
        queue = f"killed-{uuid.uuid4().hex}"
        async with AsyncExitStack() as open_clients:
            clients = [
                await open_clients.enter_async_context(AsyncClient(server.url, retry=None)) for server in servers
            ]
            await clients[0].create_queue(queue, visibility_timeout=VISIBILITY_SECONDS)
            async with Load(queue, clients) as load:
                await load.progress(range(len(servers)), PROGRESS)
                victim = await worker_of_the_queue(servers)
                before = await fences(store, queue)
                servers[victim].process.kill()
                load.gone.add(victim)
                await load.progress(set(range(len(servers))) - {victim}, PROGRESS)
                load.stop_producing()
                await until(lambda: load.all_confirmed <= load.settled)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while await fences(store, queue) == before:
                        await asyncio.sleep(POLL_SECONDS)
        assert load.all_confirmed <= load.received.keys()

    async def worker_of_the_queue(servers: list[Running]) -> int:
        """Which of them holds the only queue's lease."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while sum(held := [server.metrics().leases_held for server in servers]) != 1:
                await asyncio.sleep(POLL_SECONDS)
        return held.index(1)

    async def with_store(servers: list[Running]) -> None:
        store = await connected_store(cassandra_cluster, own_keyspace)
        try:
            await test(servers, store)
        finally:
            await store.close()

    with on_cassandra(cassandra_cluster.contact_points, own_keyspace, 3) as servers:
        asyncio.run(with_store(servers))
