"""What a message costs through batching, with 64 clients at once and alone, counted by the store.

Under load the background work (repair, leases, the wake index) runs beside the clients, on a server of its own, and is
counted apart: it goes by the clock, so that its share of a message depends on how fast the machine is. `test_flat.py`
counts it in, on a clock that is made.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from angelhair.engine.store import Store
from angelhair.errors import QueueNotFound
from angelhair.model import QueueSettings
from angelhair.stores.counting import Counts
from angelhair.stores.sqlite import open_store
from tests.costs.clients import ACCOUNT, CLIENTS, QUEUE, Cost, Server
from tests.costs.clocks import StillClock

MESSAGES = 50 * CLIENTS

CHANGES_PER_MESSAGE = 0.1
READS_PER_MESSAGE = 0.1
"""The bars."""

ANSWERED = 0.9
"""The share of messages that a busy cluster must have brought through for the figures to count."""

SETTINGS = QueueSettings(visibility_timeout_ms=600_000)
"""Nothing that a slow machine still holds becomes visible again and is paid for twice."""

Opening = Callable[[Path], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[Store]:
    store = await open_store(folder / "costs.db")
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def on_cassandra(_folder: Path) -> AsyncIterator[Store]:
    from cluster.testing import connected_store, shared_cluster, shared_keyspace

    # Schema changes take seconds: whoever comes first makes the keyspace, the others delete what was there.
    store = await connected_store(shared_cluster(), await shared_keyspace())
    with contextlib.suppress(QueueNotFound):
        await Server(store).engine.delete_queue(ACCOUNT, QUEUE)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture(
    params=[
        pytest.param(on_sqlite, id="sqlite"),
        pytest.param(on_cassandra, id="cassandra", marks=pytest.mark.cassandra),
    ]
)
def opening(request: pytest.FixtureRequest) -> Opening:
    found: Opening = request.param
    return found


def run(opening: Opening, folder: Path, test: Callable[[Store], Coroutine[None, None, None]]) -> None:
    async def whole() -> None:
        async with opening(folder) as store:
            await test(store)

    asyncio.run(whole())


def test_with_64_clients_a_tenth_of_a_conditional_write_and_of_a_read_at_most(opening: Opening, tmp_path: Path) -> None:
    async def test(store: Store) -> None:
        server, background = Server(store), Server(store)
        await server.create(SETTINGS)
        background.workers.start([QUEUE])
        await server.put(CLIENTS)
        await server.ack(await server.receive(CLIENTS))

        put, put_counts = await server.counted(server.put(MESSAGES))
        receipts, receive_counts = await server.counted(server.receive(put))
        acked, ack_counts = await server.counted(server.ack(receipts))
        await background.workers.stop()
        assert acked > MESSAGES * ANSWERED
        costs = {
            "put": Cost.of(put_counts, put),
            "receive": Cost.of(receive_counts, len(receipts)),
            "ack": Cost.of(ack_counts, acked),
        }
        print(*(f"{verb}: {cost}" for verb, cost in costs.items()), sep="\n")
        print(f"background: {background.store.counts}")
        for verb, cost in costs.items():
            assert cost.changes <= CHANGES_PER_MESSAGE, f"{verb}: {cost}"
            assert cost.reads <= READS_PER_MESSAGE, f"{verb}: {cost}"

    run(opening, tmp_path, test)


def test_a_lone_put_is_one_conditional_write_one_blind_write_and_one_read(opening: Opening, tmp_path: Path) -> None:
    async def test(store: Store) -> None:
        server = Server(store, StillClock.at_present())
        await server.create(SETTINGS)
        await server.put(1)
        confirmed, counts = await server.counted(server.put(1))
        assert confirmed == 1
        assert (counts.changes, counts.writes, counts.reads, counts.drops) == (1, 1, 1, 0), counts
        assert (counts.rows_changed, counts.rows_written) == (1, 1), counts

    run(opening, tmp_path, test)


def test_a_lone_ack_is_one_conditional_write(opening: Opening, tmp_path: Path) -> None:
    async def test(store: Store) -> None:
        server = Server(store, StillClock.at_present())
        await server.create(SETTINGS)
        await server.put(1)
        receipts = await server.receive(1)
        acked, counts = await server.counted(server.ack(receipts))
        assert acked == 1
        assert counts == Counts(changes=1, rows_changed=1), counts

    run(opening, tmp_path, test)
