"""What stands in a run's place was voided by another producer; and a move that is given back without a void."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS, LEDGER, STATES
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * HOUR}


async def test_a1_run_whose_message_stands_under_an_id_that_a_producer_voided(world: World) -> None:
    first, producer, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m", key="k")]
    run = Run("task", 0, 1, "digest", DAY)
    begun = await first.engine.begin_run(world.account, "orders", run)

    async def meanwhile() -> None:
        world.wait(31 * MINUTE)
        # Dies after the void, before the message is at its new id.
        producer.store.next("write", BODIES, NEVER_SENT, times=1000)
        (unknown,) = await producer.put_outcomes("orders", [NewMessage(b"m", key="k")])
        assert isinstance(unknown, StoreError)
        # The first try's write still arrives; then it dies.
        first.store.next("change", KEYS, NEVER_SENT, times=1000)
        first.store.next("change", LEDGER, NEVER_SENT, times=1000)

    first.store.next("write", BODIES, meanwhile)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    again = await third.engine.begin_run(world.account, "orders", run)
    assert again is not None
    await third.engine.finish_run(again, batch)
    assert await all_of(world, world.server()) == [b"m"]


@pytest.mark.parametrize("sealed", [False, True])
async def test_r7_twice_when_a_late_move_is_given_back_because_its_lane_is_sealed(world: World, sealed: object) -> None:
    """False is the control. Both clocks are within the allowed error."""
    dying, ahead, behind = world.server(), world.server(ahead_ms=4 * SECOND), world.server(ahead_ms=-4 * SECOND)
    await dying.create("dead", retention_ms=MINUTE, lanes=2, **SETTINGS)
    await dying.create("orders", retention_ms=None, **SETTINGS)
    await dying.put("orders", b"a", b"b", b"c", b"d")
    for _n in range(4):
        dying.store.next(
            "change",
            STATES,
            NEVER_SENT,
            times=1000,
            when=lambda c: any((r.values or {}).get("settled") == "moved" for r in c.rows),
        )
        try:
            await dying.engine.redrive(world.account, "orders", "dead", 1)
        except StoreError:
            pass
    await ahead.work("orders", 2 * SECOND)  # has seen them moving
    if sealed:
        await dying.engine.change_queue(world.account, "dead", {"lanes": 1})
    # Nobody works for a while.
    world.wait(47 * SECOND)
    for _ in range(3):
        assert await ahead.receive("orders") == []
        await ahead.step("orders")
        world.wait(400)
    world.wait(6_800)
    got = []
    for _ in range(2):
        await ahead.step("orders")
    _states, _ = await world.bucket("orders", 0)
    got += [d.body for d in await behind.take("dead", 10)]
    await ahead.step("orders")
    for _ in range(30):
        await ahead.step("orders")
        got += [d.body for d in await ahead.take("orders", 10)]
        got += [d.body for d in await ahead.take("dead", 10)]
        world.wait(SECOND)
    assert sorted(got) == [b"a", b"b", b"c", b"d"], got
