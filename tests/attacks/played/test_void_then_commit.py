"""An id is voided by who gives it up, and committed by who wrote it, before the row for it says anything."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS, LEDGER
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.attacks.played.tools import all_of, repending
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * HOUR}


@pytest.mark.parametrize("dies", [True, False])
async def test_a1_key_voided_at_half_its_retention_is_committed_by_its_first_put(world: World, dies: object) -> None:
    first, other = world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **SETTINGS)
    said = []

    async def meanwhile() -> None:
        world.wait(31 * MINUTE)
        if dies:
            other.store.next("change", KEYS, NEVER_SENT, when=repending, times=1000)
            said.extend(await other.put_outcomes("orders", [NewMessage(b"m", key="k")]))
            other.store.heal()

    if dies:
        first.store.next("write", BODIES, meanwhile)
        (outcome,) = await first.put_outcomes("orders", [NewMessage(b"m", key="k")])
    else:
        # Nobody dies: the first goes on between the other's void and its word in the key's row.
        import asyncio

        go, reached = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            reached.set()
            await go.wait()

        first.store.next("write", BODIES, hold)
        task = asyncio.create_task(first.put_outcomes("orders", [NewMessage(b"m", key="k")]))
        await reached.wait()
        world.wait(31 * MINUTE)

        async def let_first() -> None:
            go.set()
            await task

        other.store.next("change", KEYS, let_first, when=repending)
        said.extend(await other.put_outcomes("orders", [NewMessage(b"m", key="k")]))
        go.set()
        (outcome,) = await task
    assert isinstance(outcome, MessageId)
    assert await all_of(world, world.server()) == [b"m"]


async def test_a1_key_voided_by_one_clock_is_completed_by_another(world: World) -> None:
    """Both clocks are within the allowed error; the message has half of its retention before it."""
    dying, ahead, behind = world.server(), world.server(ahead_ms=4 * SECOND), world.server(ahead_ms=-4 * SECOND)
    await ahead.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    dying.store.next("write", BODIES, NEVER_SENT, times=1000)
    await dying.put_outcomes("orders", [NewMessage(b"m", key="k")])
    world.wait(5 * MINUTE - 2 * SECOND)
    ahead.store.next("change", KEYS, NEVER_SENT, when=repending, times=1000)
    (unknown,) = await ahead.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(unknown, StoreError)
    (outcome,) = await behind.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(outcome, MessageId)
    assert await all_of(world, world.server()) == [b"m"]


@pytest.mark.parametrize("keyed", [True, False])
async def test_a1_run_voided_before_its_retention_was_made_longer(world: World, keyed: object) -> None:
    """The second try dies between the void and the ledger; then the queue keeps longer; the third commits."""
    first, second, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=MINUTE, **SETTINGS)
    batch = [NewMessage(b"a", key="k" if keyed else None), NewMessage(b"b", key="l" if keyed else None)]
    run = Run("task", 0, 2, "digest", DAY)
    first.store.next("change", LEDGER, NEVER_SENT, times=1000, when=lambda c: c.rows[0].values["status"] == "committed")
    begun = await first.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    world.wait(2 * MINUTE)
    begun = await second.engine.begin_run(world.account, "orders", run)
    second.store.next("change", LEDGER, NEVER_SENT, times=1000)
    with pytest.raises(StoreError):
        await second.engine.finish_run(begun, batch)
    await third.engine.change_queue(world.account, "orders", {"retention_ms": DAY})
    begun = await third.engine.begin_run(world.account, "orders", run)
    assert begun is not None
    await third.engine.finish_run(begun, batch)
    assert sorted(await all_of(world, world.server())) == [b"a", b"b"]


async def test_a1_key_voided_before_its_retention_was_made_longer(world: World) -> None:
    first, second, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=MINUTE, **SETTINGS)
    first.store.next("change", KEYS, NEVER_SENT, times=1000, when=lambda c: c.rows[0].values["status"] == "committed")
    await first.put_outcomes("orders", [NewMessage(b"m", key="k")])
    world.wait(2 * MINUTE)
    second.store.next("change", KEYS, NEVER_SENT, when=repending, times=1000)
    (unknown,) = await second.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(unknown, StoreError)
    await third.engine.change_queue(world.account, "orders", {"retention_ms": DAY})
    (outcome,) = await third.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(outcome, MessageId)
    assert await all_of(world, world.server()) == [b"m"]


async def test_a1_delayed_run_voided_while_its_first_try_is_about_to_commit(world: World) -> None:
    """A delay longer than the retention: nothing has expired, but a run's date is judged without the delay."""
    first, second = world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m", delay_ms=3 * HOUR)]
    run = Run("task", 0, 1, "digest", DAY)
    begun = await first.engine.begin_run(world.account, "orders", run)

    async def meanwhile() -> None:
        world.wait(61 * MINUTE)
        again = await second.engine.begin_run(world.account, "orders", run)
        second.store.next("change", LEDGER, NEVER_SENT, times=1000)
        with pytest.raises(StoreError):
            await second.engine.finish_run(again, batch)

    first.store.next("change", LEDGER, meanwhile, when=lambda c: c.rows[0].values["status"] == "committed")
    await first.engine.finish_run(begun, batch)
    world.wait(3 * HOUR - 61 * MINUTE)
    assert await all_of(world, world.server(), ms=4 * MINUTE) == [b"m"]


async def test_a10_delayed_run_that_is_tried_again_waits_anew(world: World) -> None:
    first, second = world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m", delay_ms=3 * HOUR)]
    run = Run("task", 0, 1, "digest", DAY)
    first.store.next("change", LEDGER, NEVER_SENT, times=1000, when=lambda c: c.rows[0].values["status"] == "committed")
    begun = await first.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    world.wait(2 * HOUR)
    again = await second.engine.begin_run(world.account, "orders", run)
    await second.engine.finish_run(again, batch)
    world.wait(HOUR + MINUTE)
    assert await all_of(world, world.server()) == [b"m"]
