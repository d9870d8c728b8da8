"""An id that was given up is handed out all the same."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import KEYS, LEDGER, POINTERS, STATES
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


@pytest.mark.parametrize("run", [False, True])
async def test_r10_twice_when_the_queue_is_purged_between_a_receives_look_and_its_claim(world: World, run) -> None:
    putter, receiver, other = world.server(), world.server(), world.server()
    await other.create("orders", **SETTINGS)
    at_claim, go_on = asyncio.Event(), asyncio.Event()
    tasks = []

    async def hold() -> None:
        at_claim.set()
        await go_on.wait()

    async def meanwhile() -> None:
        receiver.store.next("change", STATES, hold, when=lambda change: bool(change.rows))
        tasks.append(asyncio.create_task(receiver.receive("orders")))
        await asyncio.wait_for(at_claim.wait(), 10)
        await other.engine.purge(world.account, "orders")

    batch = [NewMessage(b"m", key=None if run else "k")]
    if run:
        begun = await putter.engine.begin_run(world.account, "orders", Run("task", 0, 1, "digest", DAY))
        putter.store.next("read", POINTERS, meanwhile)
        await putter.engine.finish_run(begun, batch)
    else:
        putter.store.next("read", POINTERS, meanwhile)
        (outcome,) = await putter.put_outcomes("orders", batch)
        assert not isinstance(outcome, Exception), outcome
    go_on.set()
    got = {delivery.id for delivery in await tasks[0]}
    for _ in range(3):
        got.update(delivery.id for delivery in await other.drain("orders"))
        await world.work("orders", MINUTE, [other])
    assert len(got) == 1, got


@pytest.mark.parametrize("run", [False, True])
async def test_r10_twice_when_two_good_clocks_differ_about_what_has_expired(world: World, run) -> None:
    """Both are within the allowed error of the store's."""
    ahead, behind = world.server(ahead_ms=4 * SECOND), world.server(ahead_ms=-4 * SECOND)
    first = world.server()
    await first.create("orders", retention_ms=MINUTE, **SETTINGS)
    batch = [NewMessage(b"m", key=None if run else "k")]
    the_run = Run("task", 0, 1, "digest", DAY)
    for table in (LEDGER, KEYS):
        first.store.next(
            "change", table, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=1000
        )
    if run:
        begun = await first.engine.begin_run(world.account, "orders", the_run)
        with pytest.raises(StoreError):
            await first.engine.finish_run(begun, batch)
    else:
        await first.put_outcomes("orders", batch)
    world.wait(58 * SECOND)
    if run:
        again = await ahead.engine.begin_run(world.account, "orders", the_run)
        await ahead.engine.finish_run(again, batch)
    else:
        (outcome,) = await ahead.put_outcomes("orders", batch)
        assert not isinstance(outcome, Exception), outcome
    got = Counter(d.body for d in await behind.drain("orders"))
    got.update(d.body for d in await ahead.drain("orders"))
    assert got[b"m"] == 1, got


async def test_control_shares(world: World) -> None:
    first, second = world.server(), world.server()
    await first.create("orders", lanes=4)
    await world.work("orders", 5 * SECOND, [first])
    for _ in range(120):
        for server in (first, second):
            await server.engine.step(world.account, "orders")
        world.wait(SECOND)
    now = second.clock.now()
    assert len([1 for worker in second.engine.memory.workers.values() if worker.lease.held(now)]) == 2
