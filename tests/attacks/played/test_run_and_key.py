"""A run's ledger voids an id that its key's row still names."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.attacks.played.tools import all_of, repending
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * HOUR}


async def test_a1_run_moved_on_and_its_key_committed_by_the_first_try(world: World) -> None:
    """Second try dies between the ledger's word and the key's; the first wakes up and commits the key."""
    first, second, _third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m", key="k")]
    run = Run("task", 0, 1, "digest", DAY)
    begun = await first.engine.begin_run(world.account, "orders", run)

    async def meanwhile() -> None:
        world.wait(31 * MINUTE)
        again = await second.engine.begin_run(world.account, "orders", run)
        second.store.next("change", KEYS, NEVER_SENT, when=repending, times=1000)
        with pytest.raises(StoreError):
            await second.engine.finish_run(again, batch)

    first.store.next("write", BODIES, meanwhile)
    await first.engine.finish_run(begun, batch)
    assert await all_of(world, world.server()) == [b"m"]


async def test_a1_run_moved_on_and_its_key_completed_by_another_producer(world: World) -> None:
    """Second try dies between the ledger's word and the key's; a producer whose clock is behind completes the key."""
    first, second = world.server(), world.server(ahead_ms=4 * SECOND)
    producer = world.server(ahead_ms=-4 * SECOND)
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m", key="k")]
    run = Run("task", 0, 1, "digest", DAY)
    begun = await first.engine.begin_run(world.account, "orders", run)
    first.store.next("write", BODIES, NEVER_SENT, times=1000)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    world.wait(30 * MINUTE - 2 * SECOND)
    again = await second.engine.begin_run(world.account, "orders", run)
    second.store.next("change", KEYS, NEVER_SENT, when=repending, times=1000)
    with pytest.raises(StoreError):
        await second.engine.finish_run(again, batch)
    (outcome,) = await producer.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(outcome, MessageId), outcome
    second.store.heal()
    again = await second.engine.begin_run(world.account, "orders", run)
    if again is not None:
        await second.engine.finish_run(again, batch)
    assert await all_of(world, world.server()) == [b"m"]


@pytest.mark.parametrize("kind", ["run", "move"])
async def test_a1_resumed_shortly_before_its_retention_ends(world: World, kind: object) -> None:
    """As the fifth attack's `completes_anothers_key_is_kept_for_its_retention`, for runs and moves."""
    dying, other = world.server(), world.server()
    await other.create("dead", retention_ms=MINUTE, **SETTINGS)
    await other.create("orders", retention_ms=None, **SETTINGS)
    if kind == "run":
        run = Run("task", 0, 1, "digest", DAY)
        await dying.engine.begin_run(world.account, "dead", run)
        world.wait(58 * SECOND)
        begun = await other.engine.begin_run(world.account, "dead", run)
        await other.engine.finish_run(begun, [NewMessage(b"m")])
    else:
        await other.put("orders", b"m")
        dying.store.next("write", BODIES, NEVER_SENT, times=1000)
        try:
            await dying.engine.redrive(world.account, "orders", "dead", 10)
        except StoreError:
            pass
        await other.step("orders")
        world.wait(50 * SECOND)
        for _ in range(9):
            await other.step("orders")
            await other.receive("orders")
            world.wait(SECOND)
        states, _ = await world.bucket("orders", 0)
        assert states.rows[0].values["settled"] == "moved"
    world.wait(5 * SECOND)
    assert [d.body for d in await other.receive("dead")] == [b"m"]


async def test_a1_run_moved_on_while_its_first_try_commits_the_key_and_nobody_dies(world: World) -> None:
    import asyncio

    first, second = world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m", key="k"), NewMessage(b"plain")]
    run = Run("task", 0, 2, "digest", DAY)
    begun = await first.engine.begin_run(world.account, "orders", run)
    reached, go = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        reached.set()
        await asyncio.wait_for(go.wait(), 5)

    first.store.next("write", BODIES, hold)
    task = asyncio.create_task(first.engine.finish_run(begun, batch))
    await asyncio.wait_for(reached.wait(), 5)
    world.wait(31 * MINUTE)
    again = await second.engine.begin_run(world.account, "orders", run)

    async def let_first() -> None:
        go.set()
        await asyncio.wait_for(asyncio.shield(task), 5)

    second.store.next("change", KEYS, let_first, when=repending)
    await second.engine.finish_run(again, batch)
    go.set()
    await task
    assert sorted(await all_of(world, world.server())) == [b"m", b"plain"]
