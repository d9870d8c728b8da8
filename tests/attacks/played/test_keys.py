"""Keys of runs, and others who use them."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS, LEDGER
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World
from tests.runs import all_of

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": 0}


def run_of(batch):
    return Run("task", 0, len(batch), "digest", DAY)


async def put(server, batch):
    begun = await server.engine.begin_run(server.world.account, "orders", run_of(batch))
    return None if begun is None else await server.engine.finish_run(begun, batch)


def lose_the_last_word(server):
    server.store.next(
        "change", LEDGER, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=1000
    )


async def test_of_equal_keys_the_second_is_put_when_the_run_is_tried_again(world: World) -> None:
    failing, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = [NewMessage(b"a", key="x"), NewMessage(b"b", key="x")]
    lose_the_last_word(failing)
    with pytest.raises(StoreError):
        await put(failing, batch)
    got = await all_of(world, other)
    assert got == {b"a": 1}
    await world.work("orders", HOUR, [other], every_ms=MINUTE)
    known = await put(other, batch)
    got += await all_of(world, other)
    assert (known, dict(got)) == ({1}, {b"a": 1})


async def test_the_runs_own_is_called_known_when_another_took_the_lapsed_key(world: World) -> None:
    failing, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = [NewMessage(b"m", key="k")]
    lose_the_last_word(failing)
    with pytest.raises(StoreError):
        await put(failing, batch)
    world.wait(6 * MINUTE)
    await other.put("orders", b"another", key="k")
    known = await put(other, batch)
    assert await all_of(world, other) == {b"m": 1, b"another": 1}
    assert known == set()


async def void_then_moved_on(world, failing, other, batch):
    begun = await failing.engine.begin_run(world.account, "orders", run_of(batch))
    await other.put("orders", count=3)
    await all_of(world, other)
    assert (await world.marks("orders")).repair == 1
    return begun


async def test_twice_when_another_took_the_lapsed_key_of_one_that_moved_on(world: World) -> None:
    failing, other = world.server(), world.server()
    await other.create("orders", **{**SETTINGS, "history_ms": DAY})
    batch = [NewMessage(b"m", key="k")]
    begun = await void_then_moved_on(world, failing, other, batch)
    lose_the_last_word(failing)
    with pytest.raises(StoreError):
        await failing.engine.finish_run(begun, batch)
    got = await all_of(world, other)
    assert got == {b"m": 1}
    world.wait(6 * MINUTE)
    await other.put("orders", b"another", key="k")
    got += await all_of(world, other)
    world.wait(6 * MINUTE)
    await put(other, batch)
    got += await all_of(world, other)
    assert got == {b"m": 1, b"another": 1}


async def test_twice_when_a_put_completes_the_pending_key_of_a_run_that_moved_on(world: World) -> None:
    failing, other = world.server(), world.server()
    await other.create("orders", **{**SETTINGS, "history_ms": DAY})
    batch = [NewMessage(b"m", key="k")]
    begun = await void_then_moved_on(world, failing, other, batch)
    lose_the_last_word(failing)
    failing.store.next(
        "change", KEYS, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=1000
    )
    with pytest.raises(StoreError):
        await failing.engine.finish_run(begun, batch)
    assert len(await other.put("orders", b"m", key="k")) == 1
    got = await all_of(world, other)
    assert got == {b"m": 1}
    await world.work("orders", 10 * MINUTE, [other], every_ms=MINUTE)
    assert await put(other, batch) is not None
    got += await all_of(world, other)
    assert got == {b"m": 1}


async def test_twice_when_a_put_completes_the_pending_key_of_a_run_that_wrote_nothing(world: World) -> None:
    failing, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    batch = [NewMessage(b"m", key="k")]
    failing.store.next("write", BODIES, NEVER_SENT, times=1000)
    with pytest.raises(StoreError):
        await put(failing, batch)
    (number,) = await other.put("orders", b"m", key="k")
    assert number == 0
    await other.put("orders", count=4)
    got = await all_of(world, other)
    assert got[b"m"] == 1
    await world.work("orders", HOUR, [other], every_ms=MINUTE)
    assert await put(other, batch) is not None
    got += await all_of(world, other)
    assert got[b"m"] == 1
