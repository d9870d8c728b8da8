"""A deleted queue's messages lie in the store for ever: its deleter slept longer than a grave is kept for it (R6)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.schema import BODIES, GRAVES, QUEUES
from tests.queues import MINUTE, World


@pytest.mark.parametrize("slept", [1, 11])
async def test_sleeping_deleter(world: World, slept: int) -> None:
    digger, deleter = world.server(), world.server()
    await digger.create("orders")
    await digger.put("orders", b"m")

    async def meanwhile() -> None:
        world.wait(slept * MINUTE)
        await digger.bury()

    deleter.store.next("change", QUEUES, meanwhile)
    await deleter.engine.delete_queue(world.account, "orders")
    world.wait(11 * MINUTE)
    await digger.bury()
    left = [place for place in await world.dump() if place[0] == BODIES.name]
    assert left == [], left


@pytest.mark.parametrize("slept", [1, 11])
async def test_dug_again_with_the_same_date(world: World, slept: int) -> None:
    """The mend's token is `buried_at`; but all rounds of one deletion write the same one."""
    digger, deleter, other = world.server(), world.server(), world.server()
    queue = await digger.create("orders")
    await digger.put("orders", b"m")
    at_fill, fill = asyncio.Event(), asyncio.Event()
    tasks = []

    async def hold() -> None:
        at_fill.set()
        await fill.wait()

    async def changed() -> None:
        # Somebody changes the queue: our mark is refused, and the second round digs again.
        await other.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": 12_345})

    async def before_second_dig() -> None:
        world.wait(slept * MINUTE)
        digger.store.next(
            "change", GRAVES, hold, when=lambda c: c.rows[0].key == queue.incarnation and c.rows[0].values is None
        )
        burying, reached = asyncio.create_task(digger.bury()), asyncio.create_task(at_fill.wait())
        tasks.append(burying)
        # It comes to the removal, or finds nothing to remove.
        await asyncio.wait([burying, reached], return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()

    deleter.store.next("change", QUEUES, changed)
    deleter.store.next("change", GRAVES, lambda: asyncio.sleep(0))
    second = deleter.store.next("change", GRAVES, before_second_dig)
    await deleter.engine.delete_queue(world.account, "orders")
    assert second.happened
    fill.set()
    await tasks[0]
    world.wait(11 * MINUTE)
    await digger.bury()
    left = [place for place in await world.dump() if place[0] == BODIES.name]
    assert left == [], left
