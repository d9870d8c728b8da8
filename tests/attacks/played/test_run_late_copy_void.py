"""A run is committed at a void id: a late copy of its key's first row comes back when all others have lapsed (A1).

As `test_run_at_void_id` (that is "absent"); here the row *names* the void id (pending, or committed by
the first try, which is told that nobody knows), and is taken for the run's own however old it is."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import ARRIVE_LATE
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 5 * MINUTE}


@pytest.mark.parametrize("copy", ["absent", "pending", "committed"])
async def test_a1_late_copy(world: World, copy: str) -> None:
    first, q, third = world.server(), world.server(), world.server()
    # Q's put has to find the key's row within its window, and X old: retention 8 minutes.
    await first.create("orders", retention_ms=8 * MINUTE, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"run", None, HOUR, "k")]
    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    first.store.next("change", KEYS, ARRIVE_LATE)  # once; then the same again is applied
    first.store.next("write", BODIES, sleep)
    begun = await first.engine.begin_run(world.account, "orders", run)
    task = asyncio.create_task(first.engine.finish_run(begun, batch))
    await asyncio.wait_for(reached.wait(), 5)
    world.wait(4 * MINUTE + SECOND)
    await q.put("orders", b"q", key="k")
    assert [d.body for d in await q.drain("orders")] == [b"q"]
    world.wait(5 * MINUTE + SECOND)
    if copy != "absent":
        await first.store.land()
    if copy == "committed":
        go.set()
        await asyncio.wait([task])
    else:
        dead = asyncio.Event()

        async def die() -> None:
            dead.set()
            await asyncio.Event().wait()

        first.store.next("change", KEYS, die)
        go.set()
        await asyncio.wait_for(dead.wait(), 5)
        task.cancel()
    again = await third.engine.begin_run(world.account, "orders", run)
    known = task.result() if again is None else await third.engine.finish_run(again, batch)
    world.wait(52 * MINUTE)
    got = await all_of(world, world.server())
    assert got == ([] if known else [b"run"]), (known, got)
