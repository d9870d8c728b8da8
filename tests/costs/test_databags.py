"""What a message of a databag costs at batches of ten, with at least twenty waiting in each partition; and that it
costs the same whatever has passed and whatever waits (D5)."""

from __future__ import annotations

import asyncio
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from angelhair import limits
from angelhair.model import DATABAG, Ask, MessageId, NewMessage, QueueSettings
from angelhair.stores.counting import Counts
from tests.costs.clients import ACCOUNT, BODY, QUEUE, Cost, SeededIdentities, Server
from tests.costs.clocks import StillClock
from tests.costs.passing import in_memory
from tests.costs.passing_bags import CHANGES_PER_MESSAGE, READS_PER_MESSAGE

FLAT = 1.1
"""Nothing costs more than a tenth more than before."""

BATCH = 10
PARTITIONS, PER_PARTITION = 16, 200
"""Messages come to partitions without an order while each gives as many as the others, so their depths drift apart. Of
so many none falls below twenty in the course of a test."""

RATE = 200
VISIBILITY_MS = 500
PASSED, DEEP = 2, 8
"""How many times the measured messages pass before it is measured again; and how much deeper it is then."""

EPOCH, MEASURED = 256, 2_560
"""A fraction of what production has, so that epochs end all the time; and a little more than all blocks' in a row, as
each holds as many deletes as messages."""

DATABAGS = 4
"""Over which a cost is taken. Where messages lie is drawn by lot, and of one databag the reads of a message vary by a
twentieth from window to window: that would be half of the tenth which is tolerated."""


async def _put(server: Server, messages: int) -> None:
    for _ in range(messages // BATCH):
        outcomes = await server.batching.put(ACCOUNT, QUEUE, [NewMessage(BODY)] * BATCH)
        assert all(isinstance(outcome, MessageId) for outcome in outcomes)


async def _pass(server: Server, clock: StillClock, messages: int) -> Counts:
    """So many are put, received and deleted, ten at a time, at a steady rate, and steps are taken."""
    before, step_ms = server.store.counts, 0
    for _ in range(messages // BATCH):
        await _put(server, BATCH)
        found = await server.batching.receive(ACCOUNT, QUEUE, Ask(BATCH))
        assert len(found) == BATCH
        outcomes = await server.batching.ack(ACCOUNT, QUEUE, [delivery.receipt for delivery in found])
        assert outcomes == [None] * BATCH
        clock.advance(1_000 * BATCH // RATE)
        if clock.now().monotonic_ms >= step_ms:
            step_ms = clock.now().monotonic_ms + await server.engine.step(ACCOUNT, QUEUE)
    return server.store.counts - before


async def _costs(seed: int, folder: Path) -> list[Counts]:
    """At first; later; and with many more that wait."""
    clock = StillClock()
    async with in_memory(clock, folder) as store:
        server = Server(store, clock, SeededIdentities(seed))
        await server.create(QueueSettings(
            kind=DATABAG, min_partitions=PARTITIONS, max_partitions=PARTITIONS, visibility_timeout_ms=VISIBILITY_MS,
            history_ms=0,
        ))
        waiting = PARTITIONS * PER_PARTITION
        await _put(server, waiting)
        await _pass(server, clock, MEASURED)
        first = await _pass(server, clock, MEASURED)
        await _pass(server, clock, PASSED * MEASURED)
        later = await _pass(server, clock, MEASURED)
        await _put(server, DEEP * waiting)
        await _pass(server, clock, 1_000)
        return [first, later, await _pass(server, clock, MEASURED)]


def test_a_message_costs_little_and_no_more_when_many_have_passed_and_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BAG_EPOCH_MESSAGES", EPOCH)
    found = [asyncio.run(_costs(seed, tmp_path)) for seed in range(DATABAGS)]
    first, later, deep = (
        Cost.of(reduce(add, some), DATABAGS * MEASURED) for some in zip(*found, strict=True)
    )
    print("at first", first, "later", later, "deep", deep, sep="\n")
    assert first.changes <= CHANGES_PER_MESSAGE and first.reads <= READS_PER_MESSAGE, first
    for cost in (later, deep):
        assert cost.changes <= FLAT * first.changes and cost.reads <= FLAT * first.reads, (first, cost)
