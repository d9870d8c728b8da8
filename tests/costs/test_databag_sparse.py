"""What a receive of a databag costs in which there is little or nothing (D5): on Cassandra each call of the store that
waits for the one before is a round trip, so they are few, however many partitions and however many messages were there
before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.engine.store import Span, Store
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage, QueueSettings
from tests.costs.clients import ACCOUNT, BODY, QUEUE, SeededIdentities
from tests.costs.clocks import StillClock
from tests.costs.passing import in_memory
from tests.faults import Between

CALLS = 6
"""One after another, of a receive by a server that has received before, with a look at the clock or the queue in it."""

CALLS_FIRST = 6
"""And by one that has not, it must find the queue and its locks before."""

SPARE_SPANS = 8
"""Reads beside one of each epoch of each block that is not finished: the queue, its epochs, further pages."""

VISIBILITY_MS = 1_000
EPOCH = 64


class _Calls(Between):
    """What was asked since the last time."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.calls = self.spans = self.rows = 0

    def begin(self) -> None:
        self.calls = self.spans = self.rows = 0

    async def time_ms(self) -> int:
        self.calls += 1
        return await super().time_ms()

    async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
        self.calls += 1
        self.spans += len(items) if verb == "read" else 0
        found = await super()._pass(verb, items)
        if verb == "read":
            rows = [
                len(slice_.rows)
                for item, slice_ in zip(items, found, strict=True)
                if isinstance(item, Span) and item.partition.table is BAG_MESSAGES
            ]
            self.rows += sum(rows)
        return found


class _Bag:
    def __init__(self, store: Store, clock: StillClock) -> None:
        self.clock, self.store, self._seed = clock, _Calls(store), 0
        self.engine = self.server()

    def server(self) -> Engine:
        self._seed += 1
        return Engine(self.store, SeededIdentities(self._seed), self.clock)

    async def create(self) -> None:
        settings = QueueSettings(kind=DATABAG, visibility_timeout_ms=VISIBILITY_MS)
        await self.engine.create_queue(ACCOUNT, QUEUE, settings)

    async def put(self, count: int, at_once: int = 1) -> None:
        for _ in range(0, count, at_once):
            outcomes = await self.engine.put(ACCOUNT, QUEUE, [NewMessage(BODY)] * at_once)
            assert all(isinstance(outcome, MessageId) for outcome in outcomes)

    async def receive(self, most: int, engine: Engine | None = None) -> list[Delivery]:
        (found,) = await (engine or self.engine).receive(ACCOUNT, QUEUE, [Ask(most)])
        assert isinstance(found, list)
        return found

    async def delete(self, found: Sequence[Delivery]) -> None:
        await self.engine.ack(ACCOUNT, QUEUE, [delivery.receipt for delivery in found])

    async def pass_through(self, count: int) -> None:
        await self.put(count, 10)
        while count:
            found = await self.receive(100)
            await self.delete(found)
            count -= len(found)
            self.clock.advance(VISIBILITY_MS // 10 if found else VISIBILITY_MS)
            await self.engine.step(ACCOUNT, QUEUE)

    async def epochs(self) -> int:
        return (await self.engine.partitions(ACCOUNT, QUEUE)).epochs


async def _sparse(folder: Path, messages: int, passed: int) -> None:
    clock = StillClock()
    async with in_memory(clock, folder) as store:
        bag = _Bag(store, clock)
        await bag.create()
        await bag.pass_through(passed)
        await bag.put(messages)
        await bag.receive(10)
        for _ in range(8):
            # Some receives come when nothing is locked any more, some while what the last one has served is.
            for pause_ms in (2 * VISIBILITY_MS, 1):
                bag.clock.advance(pause_ms)
                live = await bag.epochs()
                bag.store.begin()
                found = await bag.receive(10)
                assert bag.store.calls <= CALLS, (bag.store.calls, len(found))
                assert bag.store.spans <= live + SPARE_SPANS, (bag.store.spans, live)
                if pause_ms > VISIBILITY_MS:
                    assert len(found) == min(10, messages), "all of them are looked at"
                await bag.delete(found)
                await bag.put(len(found))
        bag.clock.advance(2 * VISIBILITY_MS)
        bag.store.begin()
        assert len(await bag.receive(10, bag.server())) == min(10, messages)
        assert bag.store.calls <= CALLS_FIRST + CALLS


@pytest.mark.parametrize("passed", [0, 2_000])
@pytest.mark.parametrize("messages", [0, 1, 5, 50])
def test_d05_a_receive_where_little_is_takes_few_calls_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: int, passed: int
) -> None:
    """Naive: one partition after another, twice as many each time, and one epoch after another of each."""
    monkeypatch.setattr(limits, "BAG_EPOCH_MESSAGES", EPOCH)
    asyncio.run(_sparse(tmp_path, messages, passed))


async def _rush(folder: Path) -> None:
    clock = StillClock()
    async with in_memory(clock, folder) as store:
        bag = _Bag(store, clock)
        await bag.create()
        for _ in range(3):
            assert await bag.receive(10) == []
        await bag.put(30_000, 1_000)
        bag.store.begin()
        assert len(await bag.receive(10)) == 10
        assert bag.store.rows <= limits.BAG_BLOCKS * limits.BAG_LOOK_MOST_ROWS
        bag.store.begin()
        assert len(await bag.receive(10)) == 10
        assert bag.store.rows <= limits.BAG_LOOK_ROWS, "it knows by now that a look at one is enough"


def test_d05_a_receive_that_expects_nothing_does_not_read_all_that_has_come(tmp_path: Path) -> None:
    asyncio.run(_rush(tmp_path))
