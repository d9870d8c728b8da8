"""The pace of background work: a step a second while something happens, however much; slower while nothing does."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.engine import accounts, catalog
from angelhair.engine.delays import line_of, line_settings
from angelhair.engine.engine import Engine
from angelhair.engine.topics.postings import hidden_account
from angelhair.identities import RandomIdentities
from angelhair.model import NewMessage, QueueSettings
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


@pytest.mark.parametrize("at_a_time", [1, 2, 16])
def test_delay_lines_that_were_left_behind_go_and_the_others_stay(
    fast: None, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    monkeypatch.setattr(limits, "DISCOVERY_SECONDS", 0.01)
    monkeypatch.setattr(limits, "DELAY_LINE_ORPHANS", at_a_time)

    async def main() -> None:
        clock = StillClock()
        store = MemoryStore(clock.now_ms)
        engine = Engine(store, RandomIdentities(), clock)
        used = []
        for name in ("one", "two", "three"):
            queue, _ = await engine.create_queue(ACCOUNT, name, QueueSettings())
            await engine.put(ACCOUNT, name, [NewMessage(b"-", delay_ms=limits.DELAY_LINE_MS + 1)])
            used.append(line_of(ACCOUNT, queue.incarnation)[1])
        hidden = hidden_account(ACCOUNT)
        for number in range(5):
            notes = {"queue": ("one", "gone")[number % 2]}
            _, name = line_of(ACCOUNT, f"{number:032x}")
            await catalog.create(store, hidden, name, line_settings(), notes, RandomIdentities(), clock.now())
        workers = Workers(engine, hidden, none)
        workers.discover()
        async with asyncio.timeout(20):
            while (await engine.list_queues(hidden))[0] != sorted(used):
                await asyncio.sleep(0.001)
        await workers.stop()
        assert workers.queues == []

    async def none() -> list[str]:
        return []

    asyncio.run(main())
