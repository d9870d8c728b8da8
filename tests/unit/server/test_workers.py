"""The pace of background work: a step a second while something happens, however much; slower while nothing does."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.engine import accounts
from angelhair.engine.engine import Engine
from angelhair.identities import RandomIdentities
from angelhair.model import QueueSettings
from angelhair.server.workers import Workers
from angelhair.settings import ACCOUNT
from angelhair.stores.memory import MemoryStore
from tests.costs.clocks import StillClock

SECONDS = 1.2


async def steps_taken(waking: bool) -> tuple[int, float]:
    """How many, and in how many seconds: a loaded machine takes longer than it was asked to."""
    clock = StillClock()
    engine = Engine(MemoryStore(clock.now_ms), RandomIdentities(), clock)
    await engine.create_queue("me", "jobs", QueueSettings())
    workers = Workers(engine, "me")
    workers.start(["jobs"])
    time = asyncio.get_running_loop().time
    began = time()
    while time() < began + SECONDS:
        if waking:
            workers.wake("jobs")
        await asyncio.sleep(0.001)
    await workers.stop()
    return workers.steps, time() - began


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same proportions, ten times as fast."""
    monkeypatch.setattr(limits, "STEP_MS", 100)
    monkeypatch.setattr(limits, "STEP_IDLE_MS", 500)


@pytest.mark.usefixtures("fast")
def test_a_busy_queue_is_not_worked_on_without_a_rest() -> None:
    """Naive: every put ends the rest, and a busy server does little else than look for work."""
    steps, seconds = asyncio.run(steps_taken(waking=True))
    assert 1 < steps <= seconds * 1000 / limits.STEP_MS + 2


@pytest.mark.usefixtures("fast")
def test_an_idle_queue_is_worked_on_ever_less_often() -> None:
    steps, seconds = asyncio.run(steps_taken(waking=False))
    # At first after 1, 2 and 4 steps' time, from then on after the longest rest.
    assert 1 < steps <= seconds * 1000 / limits.STEP_IDLE_MS + 4


def test_every_account_s_queues_are_worked_on(fast: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Naive: the default account's only. A queue of another account would keep what has expired for ever."""
    monkeypatch.setattr(limits, "DISCOVERY_SECONDS", 0.01)

    async def main() -> None:
        clock = StillClock()
        store = MemoryStore(clock.now_ms)
        engine, other = (Engine(store, RandomIdentities(), clock) for _ in range(2))
        workers = Workers(engine, ACCOUNT)
        workers.discover()
        await other.create_queue(ACCOUNT, "jobs", QueueSettings())
        shop = await accounts.create_account(store, "shop", None, RandomIdentities(), clock.now())
        await other.create_queue(shop.id, "jobs", QueueSettings())
        await other.create_queue(shop.id, "more", QueueSettings())
        wanted = {(ACCOUNT, "jobs"), (shop.id, "jobs"), (shop.id, "more")}
        async with asyncio.timeout(20):
            while set(workers.queues) != wanted or len(engine.memory.workers) < len(wanted):
                await asyncio.sleep(0.001)
        await other.delete_queue(shop.id, "jobs")
        async with asyncio.timeout(20):
            while set(workers.queues) != wanted - {(shop.id, "jobs")}:
                workers.wake("jobs", shop.id)
                await asyncio.sleep(0.001)
        await workers.stop()

    asyncio.run(main())
