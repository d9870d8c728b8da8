"""D7: every duplicate that the store can show is counted, once."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.model import MessageId
from tests.promises.databags import HIDE, NAME, block_of, create, delete, drain_all, put, receive
from tests.queues import MINUTE, SECOND, Server, World


async def duplicates(server: Server) -> int:
    return (await server.engine.partitions(server.world.account, NAME)).duplicates


async def served_though_deleted(world: World, server: Server, other: Server) -> MessageId:
    """Another server has read, and locks; in between the delete is confirmed elsewhere."""
    (message,) = await put(server, b"one")
    await receive(other)
    world.wait(HIDE + SECOND)

    async def delete_it() -> None:
        assert await delete(server, message) == [None]
        world.wait(1)

    other.store.next(
        "read", BAG_MESSAGES, delete_it, after=True,
        when=lambda span: span.partition.key.split(".")[1] == str(block_of(message)),
    )
    assert [given.body for given in await receive(other)] == [b"one"]
    world.wait(HIDE + SECOND)
    return message


async def serve_its_block(world: World, server: Server, message: MessageId) -> None:
    while block_of((await put(server, b"next"))[0]) != block_of(message):
        pass
    await drain_all(server)


async def test_d7_a_duplicate_is_counted_when_its_partition_is_served_again(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, min_partitions=16, max_partitions=16)
    message = await served_though_deleted(world, server, other)
    assert await duplicates(server) == 0, "not seen yet"
    await serve_its_block(world, other, message)
    assert await duplicates(server) == 1


async def test_d7_a_duplicate_is_counted_though_its_epoch_ends_before_its_partition_is_served_again(
    world: World,
) -> None:
    server, other = world.server(), world.server()
    await create(server, min_partitions=16, max_partitions=16)
    message = await served_though_deleted(world, server, other)
    await server.work(NAME, limits.BAG_EPOCH_AGE_MS + MINUTE, every_ms=10 * SECOND)
    assert await duplicates(server) == 1
    await serve_its_block(world, other, message)
    await serve_its_block(world, server, message)
    assert await duplicates(server) == 1, "and not again, by whoever remembers the lock as it was"


async def test_d7_a_duplicate_is_counted_though_nobody_comes_across_it_again(world: World) -> None:
    """Of a sealed epoch in which nothing is left nothing is read any more: what was given of it is looked at."""
    server, other = world.server(), world.server()
    await create(server, min_partitions=16, max_partitions=16)
    message = await served_though_deleted(world, server, other)
    world.wait(limits.BAG_EPOCH_AGE_MS)
    bag = other.engine._kinds["databag"]  # type: ignore[attr-defined]
    from angelhair.engine.databag import epochs as epochs_of

    found = await bag.bag(await world.queue(NAME))
    (now,) = await epochs_of.load(found, [block_of(message)])
    assert await epochs_of.seal(found, block_of(message), now)
    world.wait(2 * SECOND)
    assert await receive(other) == [], "it has seen that nothing is left there"
    await serve_its_block(world, other, message)
    assert await duplicates(server) == 1


async def test_d7_what_is_served_twice_within_one_time_out_is_counted(world: World) -> None:
    """A clock that is ahead, by less than is believed, locks until later than it should; who has watched for as long as
    the lock lasts serves again. What the store shows is that the time was not over."""
    server, ahead = world.server(), world.server(ahead_ms=limits.CLOCK_ERROR_MS - SECOND)
    await create(server, min_partitions=16, max_partitions=16)
    await put(server, b"one", b"two")
    assert len(await receive(ahead)) == 2
    assert await receive(server) == [], "it sees the locks, and watches them from now on"
    world.wait(HIDE)
    assert len(await receive(server)) == 2
    assert await duplicates(server) == 2
    world.wait(HIDE)
    assert len(await receive(server)) == 2, "not deleted, and this time it was over"
    assert await duplicates(server) == 2


async def test_d7_nothing_is_counted_where_nothing_goes_wrong(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, visibility_timeout_ms=SECOND)
    for _ in range(20):
        await put(server, *(b"%d" % number for number in range(20)))
        world.wait(10)
        for each in (server, other):
            found = await receive(each, 10)
            world.wait(5)
            await delete(each, *(given.id for given in found[::2]))
        world.wait(SECOND)
    await server.work(NAME, limits.BAG_EPOCH_AGE_MS + MINUTE, every_ms=10 * SECOND)
    assert await duplicates(server) == 0
