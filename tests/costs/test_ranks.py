"""R11: what fair queues and priorities cost those who do not use them, and those who do, in calls of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from angelhair.model import Ask, NewMessage, QueueSettings
from angelhair.stores.counting import Counts
from angelhair.stores.memory import MemoryStore
from tests.costs.clients import ACCOUNT, BODY, QUEUE, Server
from tests.costs.clocks import StillClock

ROUNDS = 40
BATCH = 10

Making = Callable[[int], NewMessage]


def cost(settings: QueueSettings, making: Making) -> Counts:
    """Of messages that are put ten at a time, received and acked, on a queue that somebody has used before."""

    async def test() -> Counts:
        clock = StillClock()
        server = Server(MemoryStore(clock.now_ms), clock)
        await server.create(settings)
        before = Counts()
        for number in range(ROUNDS):
            if number == ROUNDS // 2:
                before = server.store.counts
            messages = [making(number * BATCH + offset) for offset in range(BATCH)]
            await server.batching.put(ACCOUNT, QUEUE, messages)
            found = await server.batching.receive(ACCOUNT, QUEUE, Ask(BATCH))
            assert len(found) == BATCH
            await server.batching.ack(ACCOUNT, QUEUE, [delivery.receipt for delivery in found])
        return server.store.counts - before

    return asyncio.run(test())


def plain(_: int) -> NewMessage:
    return NewMessage(BODY)


def test_r11_a_fair_queue_costs_nothing_as_long_as_nobody_floods_it() -> None:
    unfair = cost(QueueSettings(fair=False), plain)
    assert cost(QueueSettings(), plain) == unfair
    assert cost(QueueSettings(), lambda number: NewMessage(BODY, group=f"tenant-{number % 7}")) == unfair


def test_r11_one_priority_costs_as_much_as_none_and_each_that_is_empty_two_reads_now_and_then() -> None:
    """A receive that finds enough among the most urgent looks no further; every eighth begins elsewhere."""
    none = cost(QueueSettings(), plain)
    urgent = cost(QueueSettings(priorities=4), lambda _: NewMessage(BODY, priority=3))
    assert urgent.changes == none.changes and urgent.writes == none.writes
    assert urgent.reads - none.reads <= 4 * (ROUNDS // 2 // 8 + 1)
