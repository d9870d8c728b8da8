"""A run is refused for its own message: the id that its key is committed with is the run's own, two steps back, or that
of another try of the same run. With Spark's onConflict=fail (accept raises) it can never be finished (R10)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS, LEDGER
from angelhair.errors import AngelhairError, InvalidRequest, StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of, repending
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": DAY}


def refuse(known: set[int]) -> None:
    if known:
        raise InvalidRequest("onConflict", f"the queue has {known} already")


@pytest.mark.parametrize("hops", [1, 2])
async def test_r10_refused_for_its_own_message(world: World, hops: int) -> None:
    """First: ledger X, key pending(X), sleeps before the body. Second (half of the retention is over): ledger Y before
    X, dies before the key's row. First wakes, writes X, commits the key, dies. X will be delivered, once. Third: Y is
    unwritten and old, so the ledger goes on: Z before Y. The key says X, which is neither Z nor Y. 1 is the control."""
    first, second, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", None, 2 * HOUR, "k")]
    reached, go = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        reached.set()
        await go.wait()

    first.store.next("write", BODIES, sleep)
    begun = await first.engine.begin_run(world.account, "orders", run)
    task = asyncio.create_task(first.engine.finish_run(begun, batch, refuse))
    await asyncio.wait_for(reached.wait(), 5)
    world.wait(31 * MINUTE)
    second.store.next("change", KEYS, NEVER_SENT, when=repending, times=1000)
    again = await second.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await second.engine.finish_run(again, batch, refuse)
    first.store.next("change", LEDGER, NEVER_SENT, times=1000)
    go.set()
    with pytest.raises(StoreError):
        await task
    world.wait(31 * MINUTE if hops == 2 else SECOND)
    said: list = []
    for _ in range(5):
        try:
            again = await third.engine.begin_run(world.account, "orders", run)
            said.append(None if again is None else await third.engine.finish_run(again, batch, refuse))
            break
        except AngelhairError as error:
            said.append(repr(error))
            world.wait(MINUTE)
    assert said[-1] in (None, set()), said


@pytest.mark.parametrize("moved", [False, True])
async def test_r10_refused_because_of_another_try(world: World, moved: bool) -> None:
    """Two tries at once, as with speculative tasks: the slower one is told that its keys are another's."""
    first, second = world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", key="k")]
    begun = await first.engine.begin_run(world.account, "orders", run)
    world.wait((31 if moved else 1) * MINUTE)
    again = await second.engine.begin_run(world.account, "orders", run)
    assert await second.engine.finish_run(again, batch, refuse) == set()
    assert await first.engine.finish_run(begun, batch, refuse) == set()
    assert await all_of(world, world.server()) == [b"m"]
