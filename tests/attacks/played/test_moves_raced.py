"""R7: moves between bucketed queues that meet consumers, workers and deletions on their way."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES, SEQUENCES, STATES
from angelhair.engine.store import Change
from angelhair.errors import QueueNotFound
from tests.promises import timelines
from tests.promises.steps import finish_around
from tests.queues import HOUR, MINUTE, SECOND, YEAR, Server, World, numbers

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": SECOND, "history_ms": 0}


def marking(change: Change) -> bool:
    return any((row.values or {}).get("settled") == "moving" for row in change.rows)


async def redrive(server: Server, name: str = "orders", to: str | None = "elsewhere", most: int = 100) -> int:
    return await server.engine.redrive(server.world.account, name, to, most)


async def test_r07_what_a_consumer_was_given_before_it_was_marked_stays_with_it(world: World) -> None:
    """R7, A2: naive, to give up all that was found together, or to take a message out of a consumer's hands."""
    server, consumer = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"a", b"b", b"c")
    taken: list[bytes] = []

    async def consumed() -> None:
        taken.extend(item.body for item in await consumer.receive("orders", 1, HOUR))

    rule = server.store.next("change", STATES, consumed, when=marking)
    assert await redrive(server) == 2
    assert rule.happened == 1 and len(taken) == 1
    moved = [item.body for item in await server.drain("elsewhere")]
    assert sorted([*taken, *moved]) == [b"a", b"b", b"c"]
    assert await consumer.receive("orders", 10) == []


async def test_r07_what_was_consumed_and_finished_before_it_was_marked_does_not_move(world: World) -> None:
    """R7, A3: its whole bucket was settled while the mover slept."""
    server, consumer = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders", **SETTINGS)
    await server.put("orders", count=4)
    taken: list[int] = []

    async def finished() -> None:
        taken.extend(numbers(await consumer.drain("orders")))
        await consumer.put("orders", b"behind")
        await finish_around(consumer)

    rule = server.store.next("change", STATES, finished, when=marking)
    assert await redrive(server) == 0
    assert rule.happened == 1 and sorted(taken) == [0, 1, 2, 3]
    assert await server.drain("elsewhere") == [] and await server.drain("orders") == []


async def test_r07_a_dead_letter_that_dies_again_remembers_where_it_came_from_first(world: World) -> None:
    """R7: so that a redrive brings it all the way back."""
    server = world.server()
    await server.create("crypt")
    dying = {"visibility_timeout_ms": SECOND, "max_deliveries": 1}
    await server.create("coffin", dead_letter_queue="crypt", **dying)
    await server.create("orders", dead_letter_queue="coffin", **dying)
    (number,) = await server.put("orders", b"poison")
    for name in ("orders", "coffin"):
        assert [item.body for item in await server.receive(name)] == [b"poison"]
        world.wait(2 * SECOND)
        assert await server.receive(name) == []
        await server.work(name, SECOND)
    (dead,) = await server.receive("crypt", 1, 0)
    assert dead.origin == f"{world.account}/orders/0-{number}"
    assert await redrive(server, "crypt", None) == 1
    assert [item.body for item in await server.receive("orders")] == [b"poison"]
    assert [await server.receive(name) for name in ("coffin", "crypt")] == [[], []]


async def test_r07_no_more_than_was_asked_for_goes_from_all_lanes_together(world: World) -> None:
    """R7: naive, to move as many of each lane, or to each queue."""
    server = world.server()
    await server.create("elsewhere")
    await server.create("orders", lanes=2)
    for number in range(8):
        await server.put("orders", b"%d" % number)
    assert [await redrive(server, most=2) for _ in range(5)] == [2, 2, 2, 2, 0]
    assert sorted(item.body for item in await server.drain("elsewhere")) == [b"%d" % number for number in range(8)]
    assert await server.drain("orders") == []


async def test_r07_no_more_than_was_asked_for_goes_back_to_all_queues_together(world: World) -> None:
    """R7: dead letters of two queues that lie in one bucket."""
    server = world.server()
    await server.create("coffin")
    for name in ("red", "blue"):
        await server.create(name, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue="coffin")
        await server.put(name, name.encode())
        await server.receive(name)
        world.wait(2 * SECOND)
        assert await server.receive(name) == []
        await server.work(name, SECOND)
    assert [await redrive(server, "coffin", None, most=1) for _ in range(3)] == [1, 1, 0]
    assert [[item.body for item in await server.receive(name)] for name in ("red", "blue")] == [[b"red"], [b"blue"]]


@pytest.mark.parametrize("made_again", [False, True])
async def test_r06_a_redrive_by_a_server_that_remembers_a_deleted_queue(world: World, made_again: bool) -> None:
    """R6: nothing has moved yet, so it looks the name up again, and moves what the queue of that name has now."""
    stale, other = world.server(), world.server()
    await stale.create("elsewhere")
    await stale.create("orders")
    await stale.put("orders", b"old")
    await other.engine.delete_queue(world.account, "orders")
    if made_again:
        await other.create("orders")
        await other.put("orders", b"new")
        assert await redrive(stale) == 1
    else:
        with pytest.raises(QueueNotFound):
            await redrive(stale)
    assert [item.body for item in await stale.drain("elsewhere")] == ([b"new"] if made_again else [])


async def test_r07_a_target_that_loses_its_lane_and_then_itself_gives_the_message_back(world: World) -> None:
    """R7, R11: its place in the target is gone, the lane takes no more ids, and before another lane is found the whole
    target has been deleted."""
    server, other = world.server(), world.server()
    await server.create("coffin", lanes=2, bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    await server.create("orders", visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue="coffin")
    await server.put("orders", b"poison")
    await server.receive("orders")
    world.wait(2 * SECOND)
    assert await server.receive("orders") == []

    async def finish_target() -> None:
        for _ in range(8):
            await other.put("coffin")
        for _ in range(6):
            await other.drain("coffin")
            await other.work("coffin", 5 * SECOND)
        await other.drain("coffin")
        await other.engine.change_queue(world.account, "coffin", {"lanes": 1})

    async def deleted() -> None:
        await other.engine.delete_queue(world.account, "coffin")

    def reserving(change: Change) -> bool:
        return writing.happened > 0 and any("next" in (row.values or {}) for row in change.rows)

    writing = server.store.next("write", BODIES, finish_target)
    gone = server.store.next("change", SEQUENCES, deleted, when=reserving, after=True)
    await server.step("orders")
    assert (writing.happened, gone.happened) == (1, 1)
    got: list[bytes] = []
    for _ in range(5):
        got += [item.body for item in await server.receive("orders", 1, HOUR)]
        await server.work("orders", SECOND)
    assert got == [b"poison"]
    await other.bury()
    world.wait(MINUTE)
    assert await server.receive("orders") == []


async def test_r07_what_a_timeline_refuses_for_ever_is_given_back(world: World) -> None:
    """R7: its rows expire so late that no store could keep the date. Naive: to try the move again for ever."""
    server = world.server()
    await timelines.create(server, expire_after_ms=10 * YEAR)
    world.wait(6 * YEAR)
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"a", b"b")
    assert await redrive(server, to=timelines.NAME) == 0
    assert sorted(item.body for item in await server.drain("orders")) == [b"a", b"b"]
    await server.work("orders", MINUTE)
    assert await world.server().drain("orders") == []


async def test_r07_a_timeline_that_is_deleted_while_a_message_is_marked_gives_it_back(world: World) -> None:
    """R7, A1: at once, or when somebody finds that the move stands still."""
    server, other = world.server(), world.server()
    await timelines.create(server)
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"a", b"b")

    async def deleted() -> None:
        await other.engine.delete_queue(world.account, timelines.NAME)

    rule = server.store.next("change", STATES, deleted, when=marking, after=True)
    assert await redrive(server, to=timelines.NAME) == 0
    assert rule.happened == 1
    got = [item.body for item in await server.drain("orders")]
    for _ in range(6):
        await server.work("orders", 10 * SECOND)
        got += [item.body for item in await server.drain("orders")]
    assert sorted(got) == [b"a", b"b"]
