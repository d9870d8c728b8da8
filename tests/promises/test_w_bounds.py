"""Timelines whose bounds are small: pages of the index, portions of what is renewed, counted, dropped and moved (W1,
R7, R8, R9)."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, DUES, PARTS, QUEUES, SEQUENCES, SHARDS
from angelhair.engine.store import Span
from angelhair.errors import InvalidRequest, Unavailable
from angelhair.model import MessageId
from tests.faults import UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, bodies, create, pass_time, put, receive, take
from tests.queues import HOUR, MINUTE, SECOND, Server, World


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of the index a read, two parts a span."""
    for name, value in (("INDEX_ROWS", 1), ("SPAN_PARTS", 2), ("INDEX_PARTS", 2), ("DIRECT_PARTS", 0)):
        monkeypatch.setattr(limits, f"TIMELINE_{name}", value)


async def spread(server: Server, count: int, every_ms: int = MINUTE) -> list[bytes]:
    """Messages in as many parts of time."""
    what = [b"%d" % number for number in range(count)]
    for number, body in enumerate(what):
        await put(server, body, in_ms=DELAY + number * every_ms)
    return what


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("every_ms", [MINUTE, 7 * MINUTE])
async def test_r9_an_index_of_many_pages_leads_to_every_message(world: World, every_ms: int) -> None:
    server = world.server()
    await create(server, lanes=1, expire_after_ms=None)
    what = await spread(server, 9, every_ms)
    assert [seen.body for seen in await server.engine.peek(world.account, NAME, 20)] == what
    world.wait(DELAY + 9 * every_ms)
    found: list[bytes] = []
    for _ in range(3):
        found += await take(server)
    assert found == what


@pytest.mark.usefixtures("narrow")
async def test_a_deleted_timeline_leaves_nothing_however_long_its_index_is(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, expire_after_ms=None)
    await spread(server, 9)
    await server.engine.delete_queue(world.account, NAME)
    server.store.next("drop", DUES, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await server.bury()
    await server.bury()
    tables = (DUES, PARTS, SHARDS)
    left = [Span(partition) for partition in server.store.touched if partition.table in tables]
    assert len(left) > 9
    assert [row for found in await world.store.read(left) for row in found.rows] == []


@pytest.mark.parametrize("most", [1, 2, 5])
async def test_statistics_say_when_they_have_not_counted_all(
    world: World, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(limits, "TIMELINE_COUNTED", most)
    monkeypatch.setattr(limits, "TIMELINE_INDEX_PARTS", 1)
    server = world.server()
    await create(server, lanes=1, expire_after_ms=None)
    await spread(server, 4)
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.delayed, stats.exact) == (min(most, 4), most >= 4)
    assert len(await server.engine.peek(world.account, NAME, most)) == min(most, 4)


async def test_what_is_done_and_not_passed_yet_does_not_count(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"slow", in_ms=DELAY)
    await put(server, b"done", in_ms=DELAY + 1)
    world.wait(DELAY + 1)
    _, done = await receive(server)
    assert await server.ack(NAME, done) == [None]
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.visible, stats.in_flight, stats.delayed) == (0, 1, 0)


@pytest.mark.ttl_by_test_clock
async def test_w1_what_nobody_works_off_is_renewed_portion_by_portion(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TIMELINE_RENEWED_ROWS", 3)
    server, late = world.server(), world.server()
    await create(server, lanes=1, expire_after_ms=HOUR)
    what = [b"%d" % number for number in range(10)]
    await put(server, *what)

    async def pass_it() -> None:
        # A copy of this one stays where consumers have been, and is void.
        await put(server, b"other", in_ms=10 * SECOND)
        world.wait(10 * SECOND)
        await receive(server)

    late.store.next("write", DUES, pass_it)
    await put(late, b"twice")
    await world.work(NAME, 5 * HOUR, [server], MINUTE)
    found: list[bytes] = []
    for _ in range(20):
        world.wait(SECOND)
        found += await take(server)
    assert sorted(found) == sorted([*what, b"other", b"twice"])


async def test_a_shard_that_cannot_be_read_keeps_no_other_from_being_looked_after(world: World) -> None:
    server = world.server()
    await create(server, lanes=2, expire_after_ms=HOUR)
    for number in range(2):
        await put(server, b"%d" % number, in_ms=DELAY + number * SECOND)
    world.wait(40 * MINUTE)
    server.store.next("read", SHARDS, UNAVAILABLE, when=lambda span: span.partition.key.endswith(".0"))
    with pytest.raises(Unavailable):
        await server.engine.step(world.account, NAME)
    parts = [partition for partition in server.store.touched if partition.table is DUES]
    rows = {row.values["body"]: row.values for found in await world.store.read([Span(part) for part in parts])
            for row in found.rows}
    lanes = {part.key.split(".")[1] for part in parts}
    assert lanes == {"0", "1"}
    assert sorted(values["renewed"] > world.dial.wall_ms - MINUTE for values in rows.values()) == [False, True]
    await server.step(NAME)
    assert sorted(await take(server)) == [b"0", b"1"]


async def test_who_cannot_be_asked_for_its_locks_is_tried_again(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    assert await receive(server, consumer="a") == []
    world.wait(3 * SECOND)
    server.store.next("read", SHARDS, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await server.engine.step(world.account, NAME)
    await pass_time(server, 5 * SECOND)
    (seen,) = await server.engine.shards(world.account, NAME)
    assert (seen.consumer, seen.fence) == ("a", 1)


# --- dead letters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [SEQUENCES, BODIES])
async def test_r7_dead_letters_that_cannot_be_written_are_moved_later_and_not_given(
    world: World, table: object
) -> None:
    server = world.server()
    dead = await exhaust(server)
    verb = "change" if table is SEQUENCES else "write"
    server.store.next(verb, table, UNAVAILABLE, times=9,  # type: ignore[arg-type]
                      when=lambda item: item.partition.key.startswith(dead))
    for _ in range(3):
        await server.step(NAME)
        assert await receive(server) == []
    server.store.heal()
    assert bodies(await server.receive("dead", 10)) == []
    await pass_time(server, 5 * SECOND)
    assert bodies(await server.receive("dead", 10)) == [b"poison"]
    assert await server.engine.peek(world.account, NAME, 10) == []


@pytest.mark.parametrize("there", [True, False])
async def test_r7_dead_letters_whose_queue_cannot_be_looked_up_are_not_forgotten(world: World, there: bool) -> None:
    """Naive: take them from the list, and then ask where they go. Neither given nor moved, they would wait for as long
    as their holder lives."""
    server = world.server()
    await exhaust(server)
    if not there:
        await server.engine.delete_queue(world.account, "dead")
    server.engine.memory.distrust(world.account, "dead")
    server.store.next("read", QUEUES, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await server.engine.step(world.account, NAME)
    found: list[bytes] = []
    for _ in range(30):
        await pass_time(server, SECOND)
        found += bodies(await receive(server))
    if there:
        assert bodies(await server.receive("dead", 10)) == [b"poison"] and found == []
    else:
        assert b"poison" in found


async def exhaust(server: Server) -> str:
    """One message has used up its deliveries and is to be moved; the incarnation of the dead letters."""
    dead = await server.create("dead")
    await create(server, lanes=1, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue="dead")
    await put(server, b"poison", in_ms=DELAY)
    server.world.wait(DELAY)
    assert len(await receive(server)) == 1
    server.world.wait(SECOND)
    assert await receive(server) == []
    return dead.incarnation


# --- what it cannot do ----------------------------------------------------------------------------------------------


async def test_what_a_timeline_cannot_do_it_says(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    engine, place = server.engine, (world.account, NAME)
    for verb in (
        engine.marks(*place), engine.buckets(*place, 0, None, 1), engine.purge(*place), engine.move_back(*place, 0, 0),
        engine.archived_up_to(*place, 0, 0), engine.retire(*place), engine.erase(*place, MessageId(0, 0)),
    ):
        with pytest.raises(InvalidRequest, match="a queue of the kind 'timeline'"):
            await verb


async def test_what_other_queues_cannot_do_they_say(world: World) -> None:
    server = world.server()
    await server.create(NAME)
    engine, place = server.engine, (world.account, NAME)
    for verb in (engine.touch_consumer(*place, "a"), engine.leave_consumer(*place, "a"), engine.shards(*place)):
        with pytest.raises(InvalidRequest, match="a queue of the kind 'bucketed'"):
            await verb
