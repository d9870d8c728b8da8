"""With 100,000 messages in flight or delayed, a receive reads a bounded number of rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from angelhair import limits
from angelhair.engine.marks import Marks
from angelhair.engine.store import Store
from angelhair.model import Ask, NewMessage, QueueSettings
from tests.costs.clients import ACCOUNT, QUEUE, Server
from tests.costs.clocks import StillClock
from tests.costs.passing import in_memory, in_sqlite

DEPTH = 100_000
BUCKET_SIZE = 100
"""Small against the depth, so that the bound is, too."""

PORTION = 500
"""Messages put and received at a time: fewer than the buckets that a reader has open at once."""

HIDDEN_MS = 3_600_000

MARKS_ROWS = len(Marks._fields)
"""The sequence's row and one for each mark."""

ROWS_BOUND = (
    MARKS_ROWS
    + limits.WAKE_ENTRIES
    # States and bodies of the buckets in which something may have become visible again.
    + limits.EXAMINED_BUCKETS * 2 * BUCKET_SIZE
    # What was delivered before from the buckets that the reader has open, then what is new in them.
    + limits.OPEN_BUCKETS * 2 * BUCKET_SIZE
    # Arming the wake index reads the marks once more.
    + MARKS_ROWS
)

Opening = Callable[[StillClock, Path], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def deep(opening: Opening, folder: Path, fill: Callable[[Server], Awaitable[None]]) -> AsyncIterator[Server]:
    clock = StillClock()
    async with opening(clock, folder) as store:
        server = Server(store, clock)
        await server.create(QueueSettings(bucket_size=BUCKET_SIZE, visibility_timeout_ms=HIDDEN_MS))
        for _ in range(DEPTH // PORTION):
            await fill(server)
        yield server


async def put_many(server: Server, delay_ms: int | None = None) -> None:
    await server.batching.put(ACCOUNT, QUEUE, [NewMessage(b"small", delay_ms=delay_ms)] * PORTION)


async def put_and_receive_many(server: Server) -> None:
    await put_many(server)
    deliveries = await server.batching.receive(ACCOUNT, QUEUE, Ask(PORTION))
    assert len(deliveries) == PORTION


async def put_delayed_many(server: Server) -> None:
    await put_many(server, delay_ms=HIDDEN_MS)


async def rows_of_one_receive(server: Server, expected: int) -> int:
    deliveries, counts = await server.counted(server.batching.receive(ACCOUNT, QUEUE, Ask(1)))
    assert len(deliveries) == expected
    return counts.rows_read


async def walk_to_the_end(server: Server) -> list[int]:
    """Receives until the reader has seen all that is there; the rows that each has read."""
    rows: list[int] = []
    while True:
        marks = (await server.engine.marks(ACCOUNT, QUEUE))[0]
        if marks.reader >= marks.next_id // BUCKET_SIZE:
            return rows
        rows.append(await rows_of_one_receive(server, 0))


openings = pytest.mark.parametrize("opening", [in_memory, in_sqlite], ids=["memory", "sqlite"])


@openings
def test_in_flight(opening: Opening, tmp_path: Path) -> None:
    async def test() -> None:
        async with deep(opening, tmp_path, put_and_receive_many) as server:
            await server.put(3)
            read = [await rows_of_one_receive(server, expected=1) for _ in range(3)]
            read.append(await rows_of_one_receive(server, expected=0))
            # A server that knows nothing yet has more to look at, and is bounded too.
            newcomer = Server(server.store, server.engine.clock)
            await newcomer.put(1)
            read.append(await rows_of_one_receive(newcomer, expected=1))
            # Everything becomes visible again in one moment.
            clock = server.engine.clock
            assert isinstance(clock, StillClock)
            clock.advance(HIDDEN_MS + limits.WAKE_SLOT_MS)
            read += [await rows_of_one_receive(server, expected=1) for _ in range(3)]
            read += [await rows_of_one_receive(newcomer, expected=1) for _ in range(3)]
            print(f"rows read by single receives with {DEPTH} in flight: {read}; the bound is {ROWS_BOUND}")
            assert max(read) <= ROWS_BOUND

    asyncio.run(test())


@openings
def test_delayed(opening: Opening, tmp_path: Path) -> None:
    async def test() -> None:
        async with deep(opening, tmp_path, put_delayed_many) as server:
            read = await walk_to_the_end(server)
            read.append(await rows_of_one_receive(server, expected=0))
            await server.put(1)
            read.append(await rows_of_one_receive(server, expected=1))
            newcomer = Server(server.store, server.engine.clock)
            await newcomer.put(1)
            read.append(await rows_of_one_receive(newcomer, expected=1))
            clock = server.engine.clock
            assert isinstance(clock, StillClock)
            clock.advance(HIDDEN_MS + limits.WAKE_SLOT_MS)
            read += [await rows_of_one_receive(server, expected=1) for _ in range(3)]
            read += [await rows_of_one_receive(newcomer, expected=1) for _ in range(3)]
            print(f"rows read by {len(read)} receives, {DEPTH} delayed: {max(read)} at most; the bound is {ROWS_BOUND}")
            assert max(read) <= ROWS_BOUND

    asyncio.run(test())
