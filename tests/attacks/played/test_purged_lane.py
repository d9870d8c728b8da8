"""A purge, and lanes that are made while it is under way."""

from __future__ import annotations

import asyncio

from angelhair.engine.delays import line_of
from angelhair.engine.schema import BODIES, QUEUES
from tests.attacks.played.tools import all_of
from tests.queues import HOUR, World


async def test_a_purge_takes_what_is_handed_over_to_a_lane_that_was_just_made(world: World) -> None:
    """What waits is purged with its line, or is below its lane's mark: of every lane that there is when the line goes,
    and not only of those that there were when the purge began."""
    server, other = world.server(), world.server()
    queue = await server.create("orders")
    await server.put("orders", b"purged", delay_ms=HOUR)
    world.wait(HOUR + 1)
    hidden, _ = line_of(world.account, queue.incarnation)
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        begun.set()
        await goes_on.wait()

    other.store.next("read", QUEUES, sleep, when=lambda span: span.partition.key == hidden)
    purging = asyncio.create_task(other.engine.purge(world.account, "orders"))
    await begun.wait()
    await server.engine.change_queue(world.account, "orders", {"lanes": 4})

    async def be_purged() -> None:
        goes_on.set()
        await purging

    # It has an id in one of the new lanes, and has seen that the line still is.
    rule = server.store.next("write", BODIES, be_purged)
    await server.step("orders")
    assert rule.happened
    await server.put("orders", b"after")
    assert await all_of(world, server) == [b"after"]
