"""A run is committed at an id that was voided long ago: its key's committed row has lapsed; nobody looks (A1, R10)."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import ARRIVE_LATE
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * MINUTE}


@pytest.mark.parametrize("how", ["control", "delay", "retention"])
async def test_a1_run_committed_at_a_void_id(world: World, how: str) -> None:
    first, q, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    delay = HOUR if how == "delay" else None
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"run", None, delay, "k")]
    first.store.next("write", BODIES, ARRIVE_LATE, times=1000)
    begun = await first.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    first.store.heal()
    world.wait(5 * MINUTE + SECOND)
    await q.put("orders", b"q", key="k")  # goes on from X to Y, voids X, writes Y, commits Y
    assert [d.body for d in await q.drain("orders")] == [b"q"]
    if how == "retention":
        await q.engine.change_queue(world.account, "orders", {"retention_ms": DAY})
    world.wait(6 * MINUTE + 10 * SECOND)  # its row lapses
    if how != "control":
        await first.store.land()  # the body arrives at X
    again = await third.engine.begin_run(world.account, "orders", run)
    known = await third.engine.finish_run(again, batch)
    assert known == set()
    world.wait(50 * MINUTE if how == "delay" else SECOND)
    got = await all_of(world, world.server())
    assert got == [b"run"], got
