"""The stores under the contract, each in a world that can run it: who opens it, who drives it, how time passes.

A new store is one line in `WORLDS`. A store outside this repository needs no line: `.venv/bin/pytest tests/contract
--store package.module:factory` runs the whole suite against what the factory opens (docs/write-your-own-store.md).
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from angelhair.clock import Moment
from angelhair.engine.store import Store
from angelhair.stores.counting import CountingStore
from angelhair.stores.memory import MemoryStore
from angelhair.stores.sqlite import open_store
from tests.simulation.core.contract_world import simulated_world

REAL_WAIT_MARGIN_SECONDS = 1.5
"""Rows live about as long as they were told: Cassandra counts in whole seconds."""


@dataclass
class World:
    name: str
    store: Store
    run: Callable[[Coroutine[Any, Any, Any]], Any]
    """Drives one test to its end."""
    together: Callable[[Sequence[Coroutine[Any, Any, Any]]], Coroutine[Any, Any, list[Any]]]
    """Drives several coroutines at the same time, from inside a test."""
    wait: Callable[[float], Coroutine[Any, Any, None]]
    """Lets time pass, as the store sees it; with a margin where the clock is a real one."""
    walks: int
    """Random walks of the differential test."""
    contenders: int
    """Tasks that fight for one row. On Cassandra each adds time-outs, so fewer prove as much."""


class ManualClock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_000

    def now(self) -> Moment:
        return Moment(self.wall_ms, self.wall_ms)

    def now_ms(self) -> int:
        return self.wall_ms

    async def wait(self, seconds: float) -> None:
        self.wall_ms += int(seconds * 1000)


async def _really_wait(seconds: float) -> None:
    await asyncio.sleep(seconds + REAL_WAIT_MARGIN_SECONDS)


async def _gather(coroutines: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    return await asyncio.gather(*coroutines)


@contextmanager
def on_asyncio(
    name: str,
    opening: AbstractAsyncContextManager[Store],
    *,
    wait: Callable[[float], Coroutine[Any, Any, None]] = _really_wait,
    walks: int = 5,
    contenders: int = 4,
) -> Iterator[World]:
    """One event loop for all tests of a store, which belongs to the loop that opened it."""
    with asyncio.Runner() as runner:
        store = runner.run(opening.__aenter__())
        try:
            yield World(name, store, runner.run, _gather, wait, walks, contenders)
        finally:
            runner.run(opening.__aexit__(None, None, None))


@contextmanager
def memory_world(_folder: Path) -> Iterator[World]:
    clock = ManualClock()

    @asynccontextmanager
    async def opening() -> AsyncIterator[Store]:
        yield MemoryStore(clock.now_ms, joins=True)

    with on_asyncio("memory", opening(), wait=clock.wait, walks=300, contenders=16) as world:
        yield world


@contextmanager
def counting_world(_folder: Path) -> Iterator[World]:
    """Whoever counts must not be noticed."""
    clock = ManualClock()

    @asynccontextmanager
    async def opening() -> AsyncIterator[Store]:
        yield CountingStore(MemoryStore(clock.now_ms, joins=True))

    with on_asyncio("counting", opening(), wait=clock.wait, walks=20, contenders=16) as world:
        yield world


@contextmanager
def sqlite_world(folder: Path) -> Iterator[World]:
    clock = ManualClock()

    @asynccontextmanager
    async def opening() -> AsyncIterator[Store]:
        store = await open_store(folder / "contract.db", clock=clock)
        yield store
        await store.close()

    with on_asyncio("sqlite", opening(), wait=clock.wait, walks=100, contenders=16) as world:
        yield world


@contextmanager
def sqlite_process_world(folder: Path) -> Iterator[World]:
    """As a server opens it. Another process has the system's clock, so time passes as it does."""

    @asynccontextmanager
    async def opening() -> AsyncIterator[Store]:
        store = await open_store(folder / "contract.db", writer="process")
        yield store
        await store.close()

    with on_asyncio("sqlite-process", opening(), walks=20, contenders=16) as world:
        yield world


@contextmanager
def cassandra_world(_folder: Path) -> Iterator[World]:
    from cluster.testing import connected_store, shared_cluster, shared_keyspace

    @asynccontextmanager
    async def opening() -> AsyncIterator[Store]:
        store = await connected_store(shared_cluster(), await shared_keyspace())
        yield store
        await store.close()

    with on_asyncio("cassandra", opening()) as world:
        yield world


class Entry(NamedTuple):
    open: Callable[[Path], AbstractContextManager[World]]
    marks: tuple[pytest.MarkDecorator, ...] = ()


WORLDS: dict[str, Entry] = {
    "memory": Entry(memory_world),
    "counting": Entry(counting_world),
    "simulated": Entry(lambda _folder: simulated_world(World)),
    "sqlite": Entry(sqlite_world),
    "sqlite-process": Entry(sqlite_process_world),
    "cassandra": Entry(cassandra_world, (pytest.mark.cassandra,)),
}


JOINING = WORLDS.keys() - {"cassandra"}
"""Stores that can do more than a partition at a time."""


def imported_world(address: str) -> Entry:
    """`package.module:factory`; the factory gives an async context manager around a store with the engine's tables."""
    module, _, name = address.partition(":")
    if not name:
        raise pytest.UsageError(f"--store wants package.module:factory, not {address!r}")
    factory = getattr(importlib.import_module(module), name)
    return Entry(lambda _folder: on_asyncio(address, factory()))
