"""R14: servers that sleep through the end of a bucket. Memory store; the sleeping is a store that waits to be woken."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from angelhair.clock import Moment
from angelhair.engine.engine import Engine
from angelhair.engine.schema import STATES
from angelhair.engine.store import Change, ChangeOutcome, Store
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, Delivery, NewMessage, QueueSettings
from angelhair.stores.memory import MemoryStore

STEPS = 400
"""Far more steps than it takes to finish and drop one bucket."""


class SteppedClock:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def now(self) -> Moment:
        return Moment(self.ms, self.ms)


class SleepyStore:
    """Passes everything on, but falls asleep just before its first claim."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asleep, self.awake = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        if not self.asleep.is_set() and any(item.partition.table is STATES and item.rows for item in changes):
            self.asleep.set()
            await self.awake.wait()
        return await self._store.change(changes)


async def _what_sleepers_deliver(sleepers: int) -> list[list[Delivery]]:
    clock = SteppedClock()
    store = MemoryStore(lambda: clock.ms)
    awake = Engine(store, RandomIdentities(), clock)
    await awake.create_queue("x", "q", QueueSettings(bucket_size=2, history_ms=0, repair_timeout_ms=100))
    await awake.put("x", "q", [NewMessage(b"0"), NewMessage(b"1")])
    sleepy = [SleepyStore(store) for _ in range(sleepers)]
    asleep = [asyncio.create_task(Engine(one, RandomIdentities(), clock).receive("x", "q", [Ask(2)])) for one in sleepy]
    for one in sleepy:
        await one.asleep.wait()
    (got,) = await awake.receive("x", "q", [Ask(2)])
    assert isinstance(got, list)
    assert await awake.ack("x", "q", [delivery.receipt for delivery in got]) == [None, None]
    for _ in range(STEPS):
        await awake.receive("x", "q", [Ask(1)])
        await awake.step("x", "q")
        clock.ms += 100
    assert (await awake.marks("x", "q"))[0].dropped == 1
    for one in sleepy:
        one.awake.set()
    return [outcome for answers in await asyncio.gather(*asleep) for outcome in answers if isinstance(outcome, list)]


def test_r14_who_sleeps_through_the_end_of_a_bucket_delivers_nothing_from_it() -> None:
    """Naive: a first claim is conditioned on absence alone, and a dropped bucket is all absence."""
    assert asyncio.run(_what_sleepers_deliver(1)) == [[]]


def test_r14_any_number_of_sleepers() -> None:
    """Naive: a flag that marks a live bucket, which a second sleeper sets again after the drop."""
    assert asyncio.run(_what_sleepers_deliver(3)) == [[], [], []]
