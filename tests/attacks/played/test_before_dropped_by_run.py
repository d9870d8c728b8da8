"""A key comes under two ids: a run's second try takes its key's row, and a `before` that is not void yet goes (R10)."""

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

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * HOUR}

pytestmark = pytest.mark.usefixtures("delays_in_buckets")


@pytest.mark.parametrize("tries", [1, 2])
async def test_r10_before_is_dropped_by_the_ledger(world: World, tries: int) -> None:
    """1 is the control: the first try lives, and voids."""
    p, first, second = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    p.store.next("write", BODIES, sleep)
    putting = asyncio.create_task(p.put_outcomes("orders", [NewMessage(b"m", None, HOUR, "k")]))
    await asyncio.wait_for(reached.wait(), 5)
    world.wait(5 * MINUTE + SECOND)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", None, HOUR, "k")]
    begun = await first.engine.begin_run(world.account, "orders", run)
    if tries == 1:
        await first.engine.finish_run(begun, batch)
    else:
        first.store.next("change", STATES, NEVER_SENT, times=1000)
        with pytest.raises(StoreError):
            await first.engine.finish_run(begun, batch)
        world.wait(5 * MINUTE + SECOND)
        again = await second.engine.begin_run(world.account, "orders", run)
        assert await second.engine.finish_run(again, batch) == set()
    go.set()
    (said,) = await putting
    world.wait(HOUR - (4 if tries == 2 else -1) * MINUTE)
    got = await all_of(world, world.server(), ms=4 * MINUTE)
    assert got == [b"m"], (said, got)
