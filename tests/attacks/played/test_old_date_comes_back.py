"""A run's confirmed message expires at once: a try that slept writes its old date over it (A1, R10).

 1. A run's first try: ledger at X, key k pending(X) with the date of then. It sleeps before it writes its body.
 2. The key's row lapses (the queue's window); the queue's retention passes too. The run's own window is a day.
 3. The run is tried again: the ledger names X, the key's row is absent, nothing is written at X. `runs._by_their_keys`
    dates the message anew (now) under the same id, writes it, commits key and ledger: confirmed.
 4. The first try wakes up and writes its row at X, blindly and whole, with the date of then. It sees that it is late,
    finds the ledger committed and returns in peace.
 5. X has outlived the retention by its date: nobody is given it, repair finishes its bucket.

Promise: A1 and 0017; `runs._written` says itself why a message is never dated anew under its id ("a try that slept
would bring the old date back").
"""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * MINUTE}


@pytest.mark.parametrize("key", ["k", None])
async def test_a1_a_sleeping_try_with_a_key(world: World, key: str | None) -> None:
    """None is the control."""
    first, other = world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", key=key)]
    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    begun = await first.engine.begin_run(world.account, "orders", run)
    first.store.next("write", BODIES, sleep)
    task = asyncio.create_task(first.engine.finish_run(begun, batch))
    await asyncio.wait_for(reached.wait(), 10)
    world.wait(61 * MINUTE)
    again = await other.engine.begin_run(world.account, "orders", run)
    assert await other.engine.finish_run(again, batch) == set()
    go.set()
    await task
    assert await all_of(world, world.server()) == [b"m"]
