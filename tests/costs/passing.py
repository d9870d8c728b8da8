"""Lets very many messages pass through one queue and counts what each costs early and late (A14).

Time is made: the clock moves a little with every message, and the background work is stepped when it asks for it.
So the counts, background included, do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from angelhair import limits
from angelhair.engine.store import Store
from angelhair.model import QueueSettings
from angelhair.stores.memory import MemoryStore
from angelhair.stores.sqlite import open_store
from tests.costs.clients import ACCOUNT, CLIENTS, QUEUE, Cost, Server
from tests.costs.clocks import StillClock

MESSAGE_MS = 6
"""Between two messages. Early enough in the run everything that happens by time alone happens too: buckets are
dropped, the wake index is kept and dropped, leases are renewed."""

WINDOW = 80_000
"""Messages over which a cost is taken: eight minutes, whole rounds of everything that the background does. Buckets are
dropped a few at a time, so a window has one more or one less of them as it falls: of twenty that would be the twentieth
which is tolerated, of eighty it is not."""

EARLY = 10_000
"""As the bar has it."""

SETTINGS = QueueSettings(visibility_timeout_ms=10_000, history_ms=5_000)
"""History is short, so that buckets are being dropped before the early window as well as before the late one."""


@asynccontextmanager
async def in_memory(clock: StillClock, _folder: Path) -> AsyncIterator[Store]:
    yield MemoryStore(clock.now_ms)


@asynccontextmanager
async def in_sqlite(clock: StillClock, folder: Path) -> AsyncIterator[Store]:
    store = await open_store(folder / "passing.db", clock=clock)
    try:
        yield store
    finally:
        await store.close()


async def pass_through(
    store: Store, clock: StillClock, starts: Iterable[int], progress: Callable[[int], None] = lambda _: None
) -> dict[int, Cost]:
    """The cost of a message in the window that begins after so many have passed, for each of the starts."""
    server = Server(store, clock)
    await server.create(SETTINGS)
    background = Background(server, clock)
    costs: dict[int, Cost] = {}
    passed = 0
    for start in sorted(starts):
        assert start >= passed, "windows must not overlap"
        while passed < start:
            passed += await _one_round(server, background, clock)
            progress(passed)
        before = server.store.counts
        counted = 0
        while counted < WINDOW:
            counted += await _one_round(server, background, clock)
        passed += counted
        costs[start] = Cost.of(server.store.counts - before, counted)
    return costs


async def _one_round(server: Server, background: Background, clock: StillClock) -> int:
    """Every client puts, receives and acks one message."""
    assert await server.put(CLIENTS) == CLIENTS
    clock.advance(CLIENTS * MESSAGE_MS // 2)
    await background.catch_up()
    assert await server.ack(await server.receive(CLIENTS)) == CLIENTS
    clock.advance(CLIENTS * MESSAGE_MS // 2)
    await background.catch_up()
    return CLIENTS


class Background:
    """What the server's workers do, on a clock that is made."""

    def __init__(self, server: Server, clock: StillClock) -> None:
        self._clock = clock
        self._step: Callable[[], Coroutine[Any, Any, int]] = lambda: server.engine.step(ACCOUNT, QUEUE)
        self._next_ms = clock.now().monotonic_ms

    async def catch_up(self) -> None:
        now_ms = self._clock.now().monotonic_ms
        while self._next_ms <= now_ms:
            pause_ms = await self._step()
            assert pause_ms >= limits.STEP_SOON_MS
            self._next_ms = max(self._next_ms + pause_ms, now_ms - limits.STEP_MS)


def differences(early: Cost, late: Cost, tolerated: float) -> list[str]:
    """Every part of the cost that has grown or shrunk by more than is tolerated."""
    return [
        f"{name}: {getattr(early, name):.4f} a message early, {getattr(late, name):.4f} late"
        for name in Cost._fields
        if abs(getattr(late, name) - getattr(early, name)) > tolerated * getattr(early, name)
    ]
