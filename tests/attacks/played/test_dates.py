"""Puts that slept, and dates that others gave them."""

from __future__ import annotations

from collections import Counter

import pytest

from angelhair.engine import places
from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, KEYS, LEDGER, POINTERS
from angelhair.engine.store import Change, RowChange, Span
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


async def test_a1_a_put_that_slept_past_its_retention_is_confirmed_and_given_to_nobody(world: World) -> None:
    putter, other = world.server(), world.server()
    await other.create("orders", retention_ms=MINUTE, **SETTINGS)

    async def sleep() -> None:
        world.wait(2 * MINUTE)

    putter.store.next("write", BODIES, sleep)
    (outcome,) = await putter.put_outcomes("orders", [NewMessage(b"m")])
    assert isinstance(outcome, MessageId)
    assert [d.body for d in await other.receive("orders")] == [b"m"]


async def test_a1_a_put_that_completes_anothers_key_is_kept_for_its_retention(world: World) -> None:
    dying, other = world.server(), world.server()
    await other.create("orders", retention_ms=MINUTE, **SETTINGS)
    dying.store.next("write", BODIES, NEVER_SENT, times=1000)
    await dying.put_outcomes("orders", [NewMessage(b"m", key="k")])
    world.wait(58 * SECOND)
    (outcome,) = await other.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(outcome, MessageId)
    world.wait(5 * SECOND)
    assert [d.body for d in await other.receive("orders")] == [b"m"]


@pytest.mark.parametrize("run", [False, True])
async def test_r10_twice_when_a_server_that_does_not_expire_gives_out_what_moved_on(world: World, run) -> None:
    first, good = world.server(), world.server()
    wrong = world.server(ahead_ms=-DAY)
    await first.create("orders", retention_ms=MINUTE, **SETTINGS)
    batch = [NewMessage(b"m", key=None if run else "k")]
    the_run = Run("task", 0, 1, "digest", DAY)
    for table in (LEDGER, KEYS):
        first.store.next(
            "change", table, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=1000
        )
    if run:
        begun = await first.engine.begin_run(world.account, "orders", the_run)
        with pytest.raises(StoreError):
            await first.engine.finish_run(begun, batch)
    else:
        await first.put_outcomes("orders", batch)
    world.wait(90 * SECOND)
    if run:
        again = await good.engine.begin_run(world.account, "orders", the_run)
        await good.engine.finish_run(again, batch)
    else:
        await good.put_outcomes("orders", batch)
    got = Counter(d.body for d in await wrong.drain("orders"))
    got.update(d.body for d in await good.drain("orders"))
    assert got[b"m"] == 1, got


async def test_a_lane_of_an_older_version_that_is_buried_meanwhile_leaves_nothing(world: World) -> None:
    server, other = world.server(), world.server()
    queue = await server.create("orders", **SETTINGS)
    await server.put("orders", b"m")
    partition = places.pointers(queue.incarnation, 0)
    await world.store.change([Change(partition, [RowChange("erased", {}, None)])])

    async def meanwhile() -> None:
        await other.engine.delete_queue(world.account, "orders")
        await other.bury()

    server.store.next("change", POINTERS, meanwhile)
    try:
        await server.engine.erase(world.account, "orders", MessageId(0, 0))
    except Exception as error:
        print(repr(error))
    (left,) = await world.store.read([Span(partition)])
    assert not left.rows, left.rows


async def test_older_lane_can_erase(world: World) -> None:
    server = world.server()
    queue = await server.create("orders", **SETTINGS)
    await server.put("orders", b"m")
    await world.store.change([Change(places.pointers(queue.incarnation, 0), [RowChange("erased", {}, None)])])
    assert await server.engine.erase(world.account, "orders", MessageId(0, 0))
    assert (await world.marks("orders")).erased == 1
