"""What a message of a timeline costs in steady state, background included, on a clock that is made."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from angelhair.model import TIMELINE, Ask, MessageId, NewMessage, QueueSettings
from angelhair.stores.counting import Counts
from tests.costs.clients import ACCOUNT, BODY, QUEUE, Cost, Server
from tests.costs.clocks import StillClock
from tests.costs.passing import in_memory

WRITES_PER_MESSAGE = 1.05
CHANGES_PER_MESSAGE = 0.05
"""The bars."""

RATE = 100
"""Messages a second: over six shards, some seventeen in each."""

ROUND_MS = 100
WARM_SECONDS, SECONDS = 65, 60


async def _steady(server: Server, clock: StillClock, seconds: int, asked: int) -> tuple[int, Counts]:
    """Producers put, one message a request, and consumers receive and ack what is due; how many were put."""
    before, put, step_ms = server.store.counts, 0, 0
    for _ in range(seconds * 1_000 // ROUND_MS):
        for _ in range(RATE * ROUND_MS // 1_000):
            (outcome,) = await server.batching.put(ACCOUNT, QUEUE, [NewMessage(BODY)])
            assert isinstance(outcome, MessageId)
            put += 1
            clock.advance(ROUND_MS * 1_000 // ROUND_MS // RATE)
        found = await server.batching.receive(ACCOUNT, QUEUE, Ask(asked))
        if found:
            outcomes = await server.batching.ack(ACCOUNT, QUEUE, [delivery.receipt for delivery in found])
            assert outcomes == [None] * len(found)
        if clock.now().monotonic_ms >= step_ms:
            step_ms = clock.now().monotonic_ms + await server.engine.step(ACCOUNT, QUEUE)
    return put, server.store.counts - before


@pytest.mark.parametrize("producer_delay_ms", [60_000, 1_000, 0])
def test_a_message_costs_one_blind_write_and_hardly_a_conditional_one(producer_delay_ms: int, tmp_path: Path) -> None:
    async def test() -> None:
        clock = StillClock()
        async with in_memory(clock, tmp_path) as store:
            server = Server(store, clock)
            await server.create(QueueSettings(kind=TIMELINE, producer_delay_ms=producer_delay_ms))
            await _steady(server, clock, WARM_SECONDS, 100)
            put, counts = await _steady(server, clock, SECONDS, 100)
            cost = Cost.of(counts, put)
            print(producer_delay_ms, cost)
            assert cost.writes <= WRITES_PER_MESSAGE and cost.rows_written <= WRITES_PER_MESSAGE, cost
            assert cost.changes <= CHANGES_PER_MESSAGE, cost
            stats = await server.engine.stats(ACCOUNT, QUEUE)
            assert stats.visible <= RATE, "the consumer keeps up"

    asyncio.run(test())


def test_nor_does_it_cost_more_when_it_is_due_in_days(tmp_path: Path) -> None:
    """The index has a row for each minute of a shard. Naive: remember a few thousand of them. Where due times are
    spread over more than that, most puts would write theirs again."""
    minutes = 7 * 24 * 60

    async def test() -> None:
        clock = StillClock()
        async with in_memory(clock, tmp_path) as store:
            server = Server(store, clock)
            await server.create(QueueSettings(kind=TIMELINE, lanes=1))
            now_ms = clock.now().wall_ms

            async def put(first: int, count: int) -> None:
                # Numbers without an order, each minute once before any twice.
                dues = [now_ms + (120 + number * 7_919 % minutes) * 60_000 for number in range(first, first + count)]
                outcomes = await server.engine.put(ACCOUNT, QUEUE, [NewMessage(BODY, due_ms=due) for due in dues])
                assert all(isinstance(outcome, MessageId) for outcome in outcomes)

            for first in range(0, minutes, 500):
                await put(first, 500)
            before, count = server.store.counts, 2_000
            for first in range(minutes, minutes + count, 500):
                await put(first, 500)
            cost = Cost.of(server.store.counts - before, count)
            print(cost)
            assert cost.rows_written <= WRITES_PER_MESSAGE, cost

    asyncio.run(test())
