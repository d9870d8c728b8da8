"""D1, D2, D3, D7, R15: databags: served by partitions that are locked, and deleted by id."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import cut, share
from angelhair.engine.schema import BAG_MESSAGES
from tests.promises.databags import (
    BLOCKS,
    HIDE,
    NAME,
    block_of,
    create,
    delete,
    drain,
    drain_all,
    locks,
    put,
    put_many,
    receive,
)
from tests.queues import SECOND, World


async def test_d1_what_is_put_is_served_until_it_is_deleted_by_its_id(world: World) -> None:
    server = world.server()
    await create(server)
    (one,) = await put(server, b"one")
    assert 0 <= one.number < 1 << 63
    (given,) = await receive(server)
    assert (given.body, given.id, given.receipt) == (b"one", one, str(one))
    assert await receive(server) == []
    world.wait(HIDE)
    assert [again.id for again in await receive(server)] == [one]
    assert await delete(server, one) == [None]
    assert await delete(server, one) == [None], "twice is as good as once (D5)"
    world.wait(HIDE)
    assert await receive(server) == []


async def test_d2_every_slice_lies_in_one_partition_however_many_there_are(world: World) -> None:
    for partitions in (1, 3, 16, 17, 100, 1_000, 4_095, limits.BAG_SLICES):
        runs = cut(partitions)
        assert len(runs) == max(partitions, limits.BAG_BLOCKS)
        assert [slice_ for run in runs for slice_ in range(run.first, run.last + 1)] == list(range(limits.BAG_SLICES))
        assert all(ids.block_of(run.first) == ids.block_of(run.last) for run in runs)
        for servers in (1, 2, 3, 7):
            shares = [list(share(len(runs), place, servers)) for place in range(servers)]
            assert [number for some in shares for number in some] == list(range(len(runs)))
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


async def test_d3_a_partition_that_served_serves_nothing_until_its_lock_is_over_whoever_asks(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server, min_partitions=16, max_partitions=16)
    await put_many(server, 400)
    served = {ids.slice_of(given.id.number) // 256 for given in await receive(server, 10)}
    assert served
    found = await locks(world, incarnation)
    assert {first // 256 for first in found} == served, "the locks are in the store"
    for asked in (server, other, other, server):
        blocks = {block_of(given.id) for given in await receive(asked, 10)}
        assert not blocks & served
        served |= blocks
    restarted = world.server()
    assert not {block_of(given.id) for given in await receive(restarted, 1_000)} & served, "nor after a restart"
    world.wait(HIDE)
    assert await receive(restarted, 10) != []


async def test_d3_each_partition_is_served_once_before_any_is_twice(world: World) -> None:
    server = world.server()
    await create(server, min_partitions=16, max_partitions=16, visibility_timeout_ms=0)
    there: set[int] = set()
    while there != set(BLOCKS):
        there |= {block_of(message) for message in await put_many(server, 100)}
    order = [block_of((await receive(server, 1))[0].id) for _ in range(64)]
    for first in range(0, 64, 16):
        assert sorted(order[first : first + 16]) == list(BLOCKS)
    restarted = world.server()
    for block in order[48:]:
        world.wait(1)
        assert block_of((await receive(restarted, 1))[0].id) == block, "its order is in the store, too"


@pytest.mark.parametrize("messages", [5, 60, 400])
async def test_d3_each_is_served_once_before_any_is_twice_however_little_is_there(world: World, messages: int) -> None:
    """Where little is, one look is at partitions that do not follow each other in turn."""
    server = world.server()
    await create(server, min_partitions=256, max_partitions=256, visibility_timeout_ms=0)
    there = {ids.slice_of(message.number) // 16 for message in await put_many(server, messages, at_once=1)}
    served = dict.fromkeys(there, -1)
    for turn in range(3 * len(there)):
        world.wait(1)
        now = {ids.slice_of(given.id.number) // 16 for given in await receive(server, 3)}
        before = [served[partition] for partition in now]
        served.update(dict.fromkeys(now, turn))
        assert min(served.values()) >= max(before), "another has waited since before the last turn of one of these"


async def test_d3_locks_hold_whatever_servers_believe_of_the_borders(world: World) -> None:
    """R15: one has sixteen partitions, the other has taken over a thousand; slices are locked all the same."""
    server, other = world.server(), world.server()
    await create(server, min_partitions=16, max_partitions=16)
    await put_many(server, 300)
    first = await receive(server, 10)
    await server.engine.change_queue(world.account, NAME, {"max_partitions": 1_000, "min_partitions": 1_000})
    locked = {block_of(given.id) for given in first}
    found = await receive(other, 1_000)
    assert found and not {block_of(given.id) for given in found} & locked
    seen = await other.engine.partitions(world.account, NAME)
    assert (seen.partitions, seen.min_partitions) == (1_000, 1_000)


async def test_d3_an_empty_partition_is_not_locked_and_a_batch_comes_from_several(world: World) -> None:
    server = world.server()
    incarnation = await create(server)
    await put(server, *(b"%d" % number for number in range(5)))
    found = await receive(server, 10)
    assert len(found) == 5
    assert len(await locks(world, incarnation)) <= 5
    for first, row in (await locks(world, incarnation)).items():
        assert any(first <= ids.slice_of(given.id.number) <= row["last"] for given in found)


async def test_d3_a_server_serves_its_share_and_those_of_others_only_when_it_has_nothing(world: World) -> None:
    from angelhair.engine.members import Holdings, Presence

    servers = [world.server() for _ in range(3)]
    for number, server in enumerate(servers):
        await server.engine.membership.step(Presence(f"place-{number}", "host", number, "1", 0), Holdings())
    for server in servers:
        await server.engine.membership.look()
    await create(servers[0], min_partitions=48, max_partitions=48)
    await put_many(servers[0], 1_000, at_once=5)
    alike = sorted(server.engine.membership.place() for server in servers)
    assert alike[-1][1] >= 3 and len(set(alike)) == 3, "other tests' servers may be there"
    for server in servers:
        place, count = server.engine.membership.place()
        own = share(48, place, count)
        for _ in range(3):
            for given in await receive(server, 1):
                slice_ = ids.slice_of(given.id.number)
                assert any(cut(48)[number].first <= slice_ <= cut(48)[number].last for number in own)
    assert len(await drain(servers[1], 1_000)) > 16
    for server in servers:
        await server.engine.membership.leave()


async def test_d7_what_is_served_although_it_was_deleted_is_counted(world: World) -> None:
    """Another server has read, and locks; in between the delete is confirmed elsewhere."""
    server, other = world.server(), world.server()
    await create(server, min_partitions=16, max_partitions=16)
    (message,) = await put(server, b"one")
    there = [places.bag_messages((await world.queue(NAME)).incarnation, block_of(message), 0)]
    await receive(other)
    world.wait(HIDE + SECOND)

    async def delete_it() -> None:
        assert await delete(server, message) == [None]
        world.wait(1)

    other.store.next("read", BAG_MESSAGES, delete_it, when=lambda span: span.partition in there, after=True)
    assert [given.body for given in await receive(other)] == [b"one"]
    world.wait(HIDE + SECOND)
    while block_of((await put(server, b"next"))[0]) != block_of(message):
        pass
    await drain_all(other)
    assert (await server.engine.partitions(world.account, NAME)).duplicates == 1
