"""D4: the number of partitions moves with the load: up while messages wait behind locks, down only when none do."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import cut
from angelhair.engine.kinds.databag import Databag
from angelhair.engine.schema import BAG_MESSAGES
from tests.promises.databags import BLOCKS, NAME, block_of, create, delete, put, put_many, receive
from tests.queues import HOUR, Server, World

FEW, MANY = 16, 64


async def number(server: Server) -> int:
    return (await server.engine.partitions(server.world.account, NAME)).partitions


async def grown(world: World) -> Server:
    """A server of a databag that is cut into many, as messages have waited; nothing is in it, and nothing locked."""
    server = world.server()
    await create(server, min_partitions=FEW, max_partitions=MANY, visibility_timeout_ms=HOUR)
    await put_many(server, 500)
    await take_all(server)
    while await number(server) < MANY:
        world.wait(limits.BAG_SYNC_MS)
        await take_all(server)
    await server.engine.purge(world.account, NAME)
    world.wait(HOUR)
    return server


async def take_all(server: Server) -> int:
    """One by one, until all is locked in which there is something; how many."""
    taken = 0
    while await receive(server, 1):
        taken += 1
    return taken


async def poll(server: Server) -> None:
    """Often enough that most partitions that are looked at are empty."""
    for _ in range(8):
        assert await receive(server, 1) == []


async def test_d4_it_is_doubled_at_every_sync_while_messages_wait(world: World) -> None:
    """Naive: what is left behind locks is forgotten when the slices are cut anew, and until the locks are over nobody
    knows that messages wait."""
    server = world.server()
    await create(server, min_partitions=2, max_partitions=MANY, visibility_timeout_ms=HOUR)
    await put_many(server, 500)
    await take_all(server)
    for expected in (4, 8, 16, 32, 64, 64):
        world.wait(limits.BAG_SYNC_MS)
        assert await receive(server, 1) == []
        assert await number(server) == expected


async def test_d4_it_is_doubled_for_what_others_have_left_as_well(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, min_partitions=FEW, max_partitions=MANY, visibility_timeout_ms=HOUR)
    await put_many(server, 500)
    await take_all(server)
    assert await receive(other, 1) == []
    world.wait(limits.BAG_SYNC_MS)
    assert await number(other) == 2 * FEW


async def shrinks(world: World, server: Server) -> bool:
    before = await number(server)
    await poll(server)
    world.wait(limits.BAG_SYNC_MS)
    return await number(server) < before


async def test_d4_it_is_not_halved_while_messages_wait_behind_locks_of_another_server(world: World) -> None:
    """One has served of some partitions, and dies; another looks at the rest, in which there is nothing."""
    server, other = await grown(world), world.server()
    messages = await put(server, *[b"m"] * 20)
    assert 0 < await take_all(server) < len(messages)
    assert not await shrinks(world, other)
    await delete(other, *messages)
    world.wait(HOUR)
    assert await shrinks(world, other)


async def test_d4_it_is_not_halved_while_messages_wait_behind_locks_of_before_a_cut(world: World) -> None:
    server = world.server()
    await create(server, min_partitions=FEW, max_partitions=2 * FEW, visibility_timeout_ms=HOUR)
    await put(server, *[b"m"] * 20)
    assert await take_all(server) == 1, "a small group lies in one block"
    world.wait(limits.BAG_SYNC_MS)
    assert await number(server) == 2 * FEW
    assert not await shrinks(world, server)


async def test_d4_it_is_not_halved_while_messages_wait_that_were_put_behind_a_lock(world: World) -> None:
    """Nobody has left them there, so no lock's row speaks of them."""
    server, other = await grown(world), world.server()
    (first,) = await put(server, b"first")
    assert await take_all(server) == 1
    run = next(run for run in cut(MANY) if run.first <= ids.slice_of(first.number) <= run.last)
    behind = None
    while behind is None:
        (message,) = await put(other, b"m")
        if run.first <= ids.slice_of(message.number) <= run.last:
            behind = message
        else:
            await delete(other, message)
    assert not await shrinks(world, server)
    await delete(other, behind)
    assert await shrinks(world, server), "what was given, and is not deleted, waits for nothing"


async def test_d3_the_order_of_turns_is_in_the_store_for_who_looks_at_statistics_first(world: World) -> None:
    server = world.server()
    await create(server, min_partitions=FEW, max_partitions=FEW, visibility_timeout_ms=0)
    while {block_of(message) for message in await put_many(server, 200, at_once=1)} != set(BLOCKS):
        "Until there is something in each of them."
    order = [block_of((await receive(server, 1))[0].id) for _ in range(FEW + 5)][5:]
    restarted = world.server()
    await restarted.engine.stats(world.account, NAME)
    for block in order:
        world.wait(1)
        assert block_of((await receive(restarted, 1))[0].id) == block


async def test_d4_slices_that_are_cut_anew_between_two_looks_are_locked_once(world: World) -> None:
    """A receive that wants more looks on before it locks. Naive: at partitions that begin where those do of which it
    holds messages already."""
    server = world.server()
    await create(server, min_partitions=16)
    await put(server, *(b"%d" % number for number in range(320)))
    bag = await Databag(server.engine.memory).bag(await server.engine.find_queue(world.account, NAME))

    async def cut_anew() -> None:
        bag.view.cut_into(64)

    server.store.next("read", BAG_MESSAGES, cut_anew)
    given = [each.body for each in await receive(server, 1_000)]
    assert len(given) == len(set(given)) == 320 and bag.view.partitions == 64
