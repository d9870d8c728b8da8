"""R6: databags that are deleted, made again and purged, and looked at meanwhile."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.errors import QueueNotFound
from tests.promises.databags import HIDE, NAME, create, delete, drain, put, put_many, receive
from tests.queues import SECOND, World


async def test_r6_a_databag_that_is_deleted_and_made_again_works_at_once_and_shows_nothing_of_before(
    world: World,
) -> None:
    server, other = world.server(), world.server()
    old = await create(server)
    before = await put_many(server, 50)
    assert len(await receive(other, 10)) == 10
    await server.engine.delete_queue(world.account, NAME)
    with pytest.raises(QueueNotFound):
        await receive(other)
    await create(server)
    assert await receive(other, 1_000) == []
    (message,) = await put(other, b"new")
    await delete(other, *before[:20])
    assert [given.body for given in await receive(server, 1_000)] == [b"new"]
    await server.bury()
    left = {key for key in await world.dump() if key[1].startswith(old) and key[0] != "sequences"}
    assert left == set()
    assert message


async def test_r6_a_put_under_way_while_the_queue_is_made_again_goes_to_the_new_one(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    await put(server, b"before")

    async def make_again() -> None:
        await other.engine.delete_queue(world.account, NAME)
        await create(other)

    server.store.next("write", BAG_MESSAGES, make_again)
    await put(server, b"under way")
    assert await drain(other) == [b"under way"]


async def test_purge_and_looking(world: World) -> None:
    server = world.server()
    await create(server, history_ms=0)
    await put_many(server, 100)
    await receive(server, 10)
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.visible, stats.in_flight, stats.exact) == (90, 10, True)
    assert len(await server.engine.peek(world.account, NAME, 7)) == 7
    assert len({peeked.body for peeked in await server.engine.peek(world.account, NAME, 1_000)}) == 100
    seen = await server.engine.partitions(world.account, NAME)
    assert 1 <= seen.locked <= 10 and seen.epochs == limits.BAG_BLOCKS and seen.duplicates == 0
    await server.engine.purge(world.account, NAME)
    assert await receive(server, 1_000) == []
    await put(server, b"after")
    world.wait(HIDE)
    assert await drain(server) == [b"after"]
    await server.work(NAME, 20 * SECOND)
    assert (await server.engine.stats(world.account, NAME)).visible == 0
