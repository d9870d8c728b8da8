"""A run is committed and one of its messages is voided afterwards, by a producer that slept (A1, R10).

 1. A run's first try: ledger pending at X, key k pending(X); it dies before it writes.
 2. Producer Q puts k within the key's window: X is unwritten and half of the retention is over, so the key's row goes
    on: pending(Y, before X). Q sleeps before it voids X.
 3. The key's row lapses (its TTL, the queue's window). The run's window is a day.
 4. The run is tried again: the ledger still names X, the key's row is absent, so it says pending(X) once more; the
    body is written at X, the key committed(X), the ledger committed. The caller is told that all of it is in the
    queue.
 5. Q wakes up and voids X: nobody has claimed it yet, so it succeeds. Q dies before it writes at Y.
 6. Nobody is ever given the message. Key and ledger say committed.

Promise: A1; 0017 "an id that a row names is never void".
"""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS, STATES
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * MINUTE}


async def test_a1_run_committed_then_voided(world: World) -> None:
    first, sleeper, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=8 * MINUTE, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", key="k")]
    first.store.next("write", BODIES, NEVER_SENT, times=1000)
    begun = await first.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    first.store.heal()
    world.wait(5 * MINUTE)

    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    def voiding(change) -> bool:
        return any((row.values or {}).get("settled") == "void" for row in change.rows)

    sleeper.store.next("change", STATES, sleep, when=voiding)
    task = asyncio.create_task(sleeper.put_outcomes("orders", [NewMessage(b"m", key="k")]))
    await reached.wait()
    world.wait(7 * MINUTE)
    again = await third.engine.begin_run(world.account, "orders", run)
    assert again is not None
    assert await third.engine.finish_run(again, batch) == set()
    sleeper.store.next("write", BODIES, NEVER_SENT, times=1000)
    go.set()
    (said,) = await task
    sleeper.store.heal()
    got = await all_of(world, world.server())
    assert got == [b"m"], (said, got)


async def test_a1_run_that_stands_beside_its_key_then_voided(world: World) -> None:
    """The first try wrote its message late, after Q had decided, and died; the window is over, and the key stands for
    another message. The run is tried again: what it says of its message is so, also after Q has woken up."""
    first, sleeper, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", key="k")]
    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    def voiding(change) -> bool:
        return any((row.values or {}).get("settled") == "void" for row in change.rows)

    async def decide() -> None:
        world.wait(5 * MINUTE + SECOND)
        sleeper.store.next("change", STATES, sleep, when=voiding)
        tasks.append(asyncio.create_task(sleeper.put_outcomes("orders", [NewMessage(b"m", key="k")])))
        await asyncio.wait_for(reached.wait(), 10)
        first.store.next("change", KEYS, NEVER_SENT, times=1000)

    tasks: list[asyncio.Task] = []
    first.store.next("write", BODIES, decide)
    begun = await first.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    world.wait(2 * MINUTE)
    await third.put("orders", b"another", key="k")
    again = await third.engine.begin_run(world.account, "orders", run)
    assert again is not None
    known = await third.engine.finish_run(again, batch)
    sleeper.store.next("write", BODIES, NEVER_SENT, times=1000)
    go.set()
    await tasks[0]
    sleeper.store.heal()
    got = await all_of(world, world.server())
    assert sorted(got) == ([b"another"] if known else [b"another", b"m"])
