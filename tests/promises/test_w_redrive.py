"""R7: dead letters of a timeline go back into it. Whoever dies on the way, each comes at least once."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import DUES, STATES
from angelhair.engine.store import Change
from angelhair.errors import InvalidRequest
from angelhair.model import TIMELINE
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, bodies, create, put, receive, take
from tests.queues import SECOND, Server, World

DEAD = "dead"


async def bury(server: Server, *what: bytes) -> None:
    """A timeline, of which these messages are in the dead letters."""
    await server.create(DEAD)
    await create(server, lanes=2, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue=DEAD)
    await put(server, *what, in_ms=DELAY)
    server.world.wait(DELAY)
    for _ in range(4):
        await receive(server)
        server.world.wait(SECOND)
        await server.step(NAME)
    assert (await server.engine.stats(server.world.account, DEAD)).visible == len(what)
    await server.engine.change_queue(server.world.account, NAME, {"max_deliveries": None})


async def redrive(server: Server, destination: str | None = None, most: int = 100) -> int:
    return await server.engine.redrive(server.world.account, DEAD, destination, most)


async def come(server: Server, *more: Server, seconds: int = 60) -> list[bytes]:
    """All that comes out of the timeline within that time, while others look into the dead letters in vain."""
    found: list[bytes] = []
    for _ in range(seconds):
        server.world.wait(SECOND)
        for each in (server, *more):
            await each.step(DEAD)
            assert await each.receive(DEAD) == []
        found += await take(server)
    return found


async def left(server: Server) -> int:
    stats = await server.engine.stats(server.world.account, DEAD)
    return stats.visible + stats.in_flight


@pytest.mark.parametrize("destination", [None, NAME])
async def test_r7_dead_letters_go_back_into_their_timeline_and_are_due_at_once(
    world: World, destination: str | None
) -> None:
    """Naive: no ids to reserve, so nothing moves, and nobody is told."""
    server = world.server()
    await bury(server, b"a", b"b", b"c")
    assert await redrive(server, destination, most=2) == 2
    assert await redrive(server, destination) == 1
    assert await redrive(server, destination) == 0
    assert await left(server) == 0
    now_ms = world.dial.wall_ms
    assert await receive(server) == [], "never before the producer delay has passed"
    world.wait(DELAY)
    found = await receive(server)
    assert sorted(bodies(found)) == [b"a", b"b", b"c"]
    assert {(each.deliveries, each.due_ms, each.origin) for each in found} == {(1, now_ms, None)}


async def test_r7_what_belongs_to_a_timeline_and_to_other_queues_goes_each_to_its_own(world: World) -> None:
    server = world.server()
    await bury(server, b"by time")
    await server.create("orders", visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue=DEAD)
    await server.put("orders", b"plain")
    for _ in range(3):
        await server.receive("orders")
        world.wait(SECOND)
        await server.step("orders")
    assert await left(server) == 2
    assert await redrive(server) + await redrive(server) == 2
    assert await come(server, seconds=10) == [b"by time"]
    assert bodies(await server.receive("orders")) == [b"plain"]


def settles(change: Change) -> bool:
    return any((row.values or {}).get("settled") == "moved" for row in change.rows)


@pytest.mark.parametrize("happening", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE])
async def test_r7_a_crash_between_the_put_and_the_mark_brings_it_again_and_loses_nothing(
    world: World, happening: str
) -> None:
    server, other = world.server(), world.server()
    await bury(server, b"a", b"b")
    server.store.next("change", STATES, happening, when=settles, times=1_000)
    await redrive(server)
    found = await come(other, seconds=2 * limits.MOVE_PATIENCE_MS // SECOND + 30)
    assert set(found) == {b"a", b"b"}
    assert await left(other) == 0
    assert len(found) == (2 if happening == LOSE_ANSWER else 4), "who goes on cannot know that they are there"


@pytest.mark.parametrize("happening", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE])
async def test_r7_a_put_that_fails_is_made_up_for_by_whoever_finds_it_moving(world: World, happening: str) -> None:
    server, other = world.server(), world.server()
    await bury(server, b"a")
    server.store.next("write", DUES, happening, times=limits.WRITE_ATTEMPTS)
    assert await redrive(server) == 0
    found = await come(other, seconds=2 * limits.MOVE_PATIENCE_MS // SECOND + 30)
    assert set(found) == {b"a"}
    assert await left(other) == 0


async def test_r7_a_timeline_that_is_deleted_meanwhile_gives_its_dead_letters_back(world: World) -> None:
    server, other = world.server(), world.server()
    await bury(server, b"a")

    async def delete() -> None:
        await other.engine.delete_queue(world.account, NAME)

    server.store.next("write", DUES, delete)
    assert await redrive(server) == 0
    found: list[bytes] = []
    for _ in range(2 * limits.MOVE_PATIENCE_MS // SECOND):
        world.wait(SECOND)
        await other.step(DEAD)
        found += bodies(await other.drain(DEAD))
    assert found == [b"a"], "unless it was given before: nobody can know"


async def test_r7_two_servers_at_once_move_each_message_once(world: World) -> None:
    server, other = world.server(), world.server()
    await bury(server, *(b"%d" % number for number in range(10)))
    moved: list[int] = []

    async def meanwhile() -> None:
        moved.append(await redrive(other))

    server.store.next("change", STATES, meanwhile, when=lambda change: not settles(change))
    moved.append(await redrive(server))
    found = await come(server, other, seconds=10)
    assert sum(moved) == 10
    assert sorted(found) == sorted(b"%d" % number for number in range(10))


async def test_from_a_timeline_nothing_is_moved_and_what_to_do_is_said(world: World) -> None:
    server = world.server()
    await server.create(DEAD, kind=TIMELINE, producer_delay_ms=0)
    await create(server, dead_letter_queue=DEAD, max_deliveries=1)
    for destination in (None, NAME):
        with pytest.raises(InvalidRequest, match="receive them, put them where they belong, and ack them"):
            await redrive(server, destination)


async def test_dead_letters_of_a_timeline_are_counted_until_they_are_settled(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    assert (await server.engine.stats(world.account, NAME)).dead == 0, "it has no dead-letter queue"
    await server.engine.delete_queue(world.account, NAME)
    await bury(server, b"a", b"b")
    for each in (server, other):
        assert (await each.engine.stats(world.account, NAME)).dead == 2
    (letter,) = await server.receive(DEAD, 1)
    assert (await server.engine.stats(world.account, NAME)).dead == 2, "somebody looks at one"
    assert await server.engine.ack(world.account, DEAD, [letter.receipt]) == [None]
    assert (await server.engine.stats(world.account, NAME)).dead == 1
    assert await redrive(server) == 1
    assert (await server.engine.stats(world.account, NAME)).dead == 0
    await server.engine.delete_queue(world.account, DEAD)
    for each in (server, other):
        found = await each.engine.stats(world.account, NAME)
        assert (found.dead, found.delayed) == (0, 1)
