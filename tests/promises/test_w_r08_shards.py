"""R8: shards and queues that come and go while producers write: nothing confirmed stays behind in one that is gone."""


from __future__ import annotations

import pytest

from angelhair.engine import places
from angelhair.engine.schema import DUES, SEQUENCES
from angelhair.engine.store import Span
from angelhair.errors import OutcomeUnknown, QueueNotFound
from angelhair.model import NewMessage
from tests.promises.test_w_r08_marks import drain
from tests.promises.timelines import DELAY, NAME, create, pass_time, put, receive, shard, take, touch
from tests.queues import HOUR, MINUTE, SECOND, START_MS, World

LOCK = 10 * SECOND


# --- shards that come and go ----------------------------------------------------------------------------------------


async def test_r8_fewer_shards_are_worked_until_they_are_drained(world: World) -> None:
    server = world.server()
    await create(server, lanes=6)
    await put(server, *[b"%d" % number for number in range(6)], in_ms=HOUR)
    for second in range(6):
        await put(server, b"s%d" % second, in_ms=HOUR + second * SECOND)
    await server.engine.change_queue(world.account, NAME, {"lanes": 2})
    queue = await world.queue(NAME)
    assert sorted(queue.lanes.values()) == ["open"] * 2 + ["sealed"] * 4
    (placed,) = await put(server, b"new", in_ms=HOUR + 4 * SECOND)
    assert placed.lane in queue.open_lanes
    await pass_time(server, MINUTE)
    assert len((await world.queue(NAME)).lanes) == 6, "something is still to come in them"
    world.wait(HOUR)
    given = await drain(server, MINUTE)
    assert sorted(given) == sorted([*(b"%d" % number for number in range(6)), *(b"s%d" % n for n in range(6)), b"new"])
    await pass_time(server, MINUTE)
    assert set((await world.queue(NAME)).lanes.values()) == {"open"}
    assert len((await world.queue(NAME)).lanes) == 2
    await put(server, b"after")
    assert await drain(server, 10 * SECOND) == [b"after"]


async def test_r8_a_producer_that_has_not_heard_of_it_puts_again_in_a_shard_that_is_open(world: World) -> None:
    server, stale = world.server(), world.server()
    incarnation = await create(server, lanes=2)
    await put(stale, b"-")
    await server.engine.change_queue(world.account, NAME, {"lanes": 1})
    (sealed,) = [lane for lane, state in (await world.queue(NAME)).lanes.items() if state == "sealed"]
    for second in range(4):
        (placed,) = await put(stale, b"%d" % second, in_ms=MINUTE + second * SECOND)
        assert placed.lane != sealed
    (found,) = await world.store.read([Span(places.sequence(incarnation, sealed))])
    assert found.rows[0].values["sealed"] == 1
    given = await drain(server, 2 * MINUTE)
    assert set(given) >= {b"-", b"0", b"1", b"2", b"3"}


async def test_r8_a_shard_is_sealed_between_a_producers_write_and_its_look(world: World) -> None:
    server, producer = world.server(), world.server()
    await create(server, lanes=2)

    async def seal() -> None:
        await server.engine.change_queue(world.account, NAME, {"lanes": 1})
        await pass_time(server, 2 * MINUTE)
        await drain(server, 20 * SECOND)
        assert len((await world.queue(NAME)).lanes) == 1, "the shard was drained, and is gone"

    await put(producer, b"-")
    producer.store.next("read", SEQUENCES, seal)
    (placed,) = await put(producer, b"late", in_ms=SECOND)
    assert placed.lane in (await world.queue(NAME)).open_lanes
    assert b"late" in await drain(server, 2 * MINUTE)


async def test_r8_a_row_that_was_confirmed_before_the_seal_keeps_its_shard_alive(world: World) -> None:
    server, producer = world.server(), world.server()
    await create(server, lanes=2)
    for second in range(2):
        await put(producer, b"%d" % second, in_ms=HOUR + second * SECOND)
    await server.engine.change_queue(world.account, NAME, {"lanes": 1})
    await pass_time(server, 10 * MINUTE)
    assert len((await world.queue(NAME)).lanes) == 2
    world.wait(HOUR)
    assert sorted(await drain(server, MINUTE)) == [b"0", b"1"]


async def test_r8_more_shards_take_their_part(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"old", in_ms=MINUTE)
    await server.engine.change_queue(world.account, NAME, {"lanes": 4})
    lanes = {placed.lane for second in range(8) for placed in await put(server, b"new", in_ms=MINUTE + second * SECOND)}
    assert lanes == {0, 1, 2, 3}
    assert sorted(await drain(server, 2 * MINUTE)) == [b"new"] * 8 + [b"old"]


# --- queues that come and go ----------------------------------------------------------------------------------------


async def test_trap_a_queue_deleted_and_made_again_works_at_once_and_sees_nothing_old(world: World) -> None:
    server, stale = world.server(), world.server()
    await create(server)
    await put(server, b"old", in_ms=DELAY)
    await put(stale, b"old", in_ms=MINUTE)
    world.wait(DELAY)
    await touch(stale, "a")
    await server.engine.delete_queue(world.account, NAME)
    await create(server)
    # The second server remembers the old queue, and holds locks there.
    assert await receive(stale, consumer="a") == []
    await put(stale, b"new", in_ms=DELAY)
    await stale.step(NAME)
    world.wait(DELAY)
    assert await take(stale, consumer="a") == [b"new"]
    await pass_time(server, 2 * MINUTE, stale)
    assert await take(server) == [] and await take(stale) == []
    await server.bury()


async def test_a_deletion_between_a_producers_write_and_its_look_is_noticed(world: World) -> None:
    server, producer = world.server(), world.server()
    await create(server)
    await put(producer, b"-")

    async def delete() -> None:
        await server.engine.delete_queue(world.account, NAME)

    producer.store.next("write", DUES, delete, after=True)
    # Not that there is no such queue: before it went, somebody may have been given the message (seed 48).
    (outcome,) = await producer.put_outcomes(NAME, [NewMessage(b"-")])
    assert isinstance(outcome, OutcomeUnknown)
    with pytest.raises(QueueNotFound):
        await producer.put_outcomes(NAME, [NewMessage(b"-")])


async def test_what_a_deleted_timeline_held_is_dropped(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=2, expire_after_ms=None)
    parts = [(placed, in_ms) for in_ms in (MINUTE, HOUR, 100 * HOUR) for placed in await put(server, b"-", in_ms=in_ms)]
    await touch(server, "a")
    await server.engine.delete_queue(world.account, NAME)
    await server.bury()
    for placed, in_ms in parts:
        (found,) = await world.store.read([Span(places.dues(incarnation, placed.lane, (START_MS + in_ms) // MINUTE))])
        assert list(found.rows) == []
    assert await shard(world, incarnation) == {}
    assert incarnation not in await server.graves()
