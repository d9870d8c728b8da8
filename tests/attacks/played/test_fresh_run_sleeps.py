"""A run is confirmed and its message voided afterwards: who began the run slept, and does not know that others have
named its id meanwhile and gone on from it (A1, R10)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, STATES
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * MINUTE}


@pytest.mark.parametrize("who", ["resumes", "began"])
async def test_a1_fresh_run_sleeps(world: World, who: str) -> None:
    """`resumes` is the control: test_sleeping_voider with other times."""
    first, second, sleeper = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", key="k")]
    begun = await first.engine.begin_run(world.account, "orders", run)
    # `first` sleeps. The run is tried elsewhere, and dies before it writes the body.
    second.store.next("write", BODIES, NEVER_SENT, times=1000)
    with pytest.raises(StoreError):
        await second.engine.finish_run(await second.engine.begin_run(world.account, "orders", run), batch)
    second.store.heal()
    world.wait(5 * MINUTE + 30 * SECOND)
    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    sleeper.store.next(
        "change", STATES, sleep, when=lambda c: any((r.values or {}).get("settled") == "void" for r in c.rows)
    )
    task = asyncio.create_task(sleeper.put_outcomes("orders", [NewMessage(b"m", key="k")]))
    await asyncio.wait_for(reached.wait(), 10)
    world.wait(MINUTE)  # the key's row lapses
    if who == "resumes":
        begun = await second.engine.begin_run(world.account, "orders", run)
    # The other's message with its key is its message, too.
    assert await first.engine.finish_run(begun, batch) in (set(), {0})
    sleeper.store.next("write", BODIES, NEVER_SENT, times=1000)
    go.set()
    (said,) = await task
    sleeper.store.heal()
    assert await first.engine.begin_run(world.account, "orders", run) is None  # committed
    got = await all_of(world, world.server())
    assert got == [b"m"], (said, got)
