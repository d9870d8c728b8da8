"""R10: a try of a run, or of a put with a key, that slept brings no old date back, and finds its lanes as they are."""

from __future__ import annotations

import pytest

from angelhair.engine.runs import Bodies
from angelhair.engine.schema import BODIES
from angelhair.model import NewMessage
from tests.queues import DAY, HOUR, MINUTE, SECOND, YEAR, World
from tests.runs import all_of, put, run_of

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": DAY}


@pytest.mark.parametrize("columns", [False, True])
async def test_a_sleeping_try_makes_a_committed_run_expire(world: World, columns: bool) -> None:
    """It began the run, slept for longer than the retention, and wakes after another has committed it, dated anew: its
    own write of the same rows, with the old date, takes the confirmed messages away."""
    sleeper, other = world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **SETTINGS)
    batch = [NewMessage(b"m%d" % n) for n in range(4)]
    mine = Bodies([m.body for m in batch]) if columns else batch
    begun = await sleeper.engine.begin_run(world.account, "orders", run_of(batch))

    async def meanwhile() -> None:
        world.wait(HOUR + MINUTE)
        assert await put(other, run_of(batch), batch)
        assert not await put(other, run_of(batch), batch)

    sleeper.store.next("write", BODIES, meanwhile)
    await sleeper.engine.finish_run(begun, mine)
    assert await all_of(world, other) == {m.body: 1 for m in batch}


async def test_a_sleeping_keyed_put_makes_a_confirmed_message_expire(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", retention_ms=MINUTE, **SETTINGS)

    async def meanwhile() -> None:
        world.wait(2 * MINUTE)
        await other.put("orders", b"m", key="k")

    sleeper.store.next("write", BODIES, meanwhile)
    await sleeper.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert await all_of(world, other) == {b"m": 1}


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("columns", [False, True])
async def test_sealed_lane_between_begin_and_finish(world: World, columns: bool, dropped: bool) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", lanes=2, **{**SETTINGS, "history_ms": 0})
    batch = [NewMessage(b"m%d" % n) for n in range(6)]
    mine = Bodies([m.body for m in batch]) if columns else batch
    begun = [
        await server.engine.begin_run(world.account, "orders", run_of(batch, writer=f"t{n}")) for n in range(2)
    ]
    assert {b.entry.lane for b in begun} == {0, 1}
    await other.engine.change_queue(world.account, "orders", {"lanes": 1})
    if dropped:
        await all_of(world, other)
        await world.work("orders", 10 * MINUTE, [other])
        assert list((await world.queue("orders")).lanes) == [0]
    for n, b in enumerate(begun):
        await server.engine.finish_run(b, mine)
        assert not await put(other, run_of(batch, writer=f"t{n}"), mine)
    assert await all_of(world, other) == {m.body: 2 for m in batch}


@pytest.mark.parametrize("ahead", [-YEAR, YEAR, 4 * MINUTE, -4 * MINUTE])
@pytest.mark.parametrize("columns", [False, True])
async def test_wrong_clock(world: World, ahead: int, columns: bool) -> None:
    wrong, right = world.server(ahead_ms=ahead), world.server()
    await right.create("orders", retention_ms=HOUR, **{**SETTINGS, "history_ms": 0})
    batch = [NewMessage(b"m%d" % n) for n in range(6)]
    mine = Bodies([m.body for m in batch]) if columns else batch
    begun = await wrong.engine.begin_run(world.account, "orders", run_of(batch))
    await wrong.engine.finish_run(begun, mine)
    begun = await right.engine.begin_run(world.account, "orders", run_of(batch, writer="b"))
    assert await put(wrong, run_of(batch, writer="b"), mine)
    got = await all_of(world, right)
    await right.engine.finish_run(begun, mine)
    got += await all_of(world, right)
    assert got == {m.body: 2 for m in batch}
    await world.work("orders", DAY + HOUR, [wrong, right], every_ms=10 * MINUTE)
    assert (await world.marks("orders")).floor == 3
