"""A run's message with a key comes under two ids: its ledger went on twice, its key's row not at all (R10)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of, repending
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


@pytest.mark.parametrize("window_ms", [30 * MINUTE, 6 * MINUTE])
async def test_r10_two_hops(world: World, window_ms: int) -> None:
    """30 minutes is the control: the key's row is not over."""
    first, second, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=10 * MINUTE, dedup_window_ms=window_ms, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", None, HOUR, "k")]
    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    first.store.next("write", BODIES, sleep)
    begun = await first.engine.begin_run(world.account, "orders", run)
    task = asyncio.create_task(first.engine.finish_run(begun, batch))
    await asyncio.wait_for(reached.wait(), 5)
    world.wait(5 * MINUTE + SECOND)
    second.store.next("change", KEYS, NEVER_SENT, when=repending, times=1000)
    again = await second.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await second.engine.finish_run(again, batch)
    world.wait(5 * MINUTE + SECOND)
    again = await third.engine.begin_run(world.account, "orders", run)
    known = await third.engine.finish_run(again, batch)
    go.set()
    try:
        said = await task
    except AngelhairError as error:
        said = error
    world.wait(HOUR - 10 * MINUTE)
    got = await all_of(world, world.server(), ms=4 * MINUTE)
    assert got == [b"m"], (known, said, got)
    assert known == set()
