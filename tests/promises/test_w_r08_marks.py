"""R8: no confirmed message of a timeline is passed over, whatever is late, lost or wrong by the clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from angelhair import limits
from angelhair.engine.schema import DUES, PARTS, SHARDS
from angelhair.engine.store import Change, Table
from angelhair.engine.timeline.parts import time_of
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import DueId, NewMessage
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, shard, take, touch
from tests.queues import HOUR, MINUTE, SECOND, START_MS, Server, World

LOCK = 10 * SECOND
ALWAYS = 1 + limits.SETTLE_ATTEMPTS
"""As often as one conditional write is tried."""


async def drain(server: Server, for_ms: int, every_ms: int = SECOND, consumer: str | None = None) -> list[bytes]:
    """Takes all that comes while time passes."""
    found: list[bytes] = []
    for _ in range(for_ms // every_ms):
        server.world.wait(every_ms)
        await server.step(NAME)
        found += await take(server, consumer=consumer)
    return found


@pytest.mark.parametrize("delay_ms", [0, SECOND, MINUTE])
async def test_r8_a_row_that_the_mark_passes_while_it_is_written_is_put_again(world: World, delay_ms: int) -> None:
    producer, consumer = world.server(), world.server()
    incarnation = await create(consumer, lanes=1, producer_delay_ms=delay_ms)

    async def pass_it() -> None:
        # Another message is due much later, and the consumer goes there.
        await put(consumer, b"other", in_ms=HOUR)
        world.wait(HOUR + MINUTE)
        assert await take(consumer) == [b"other"]

    producer.store.next("write", DUES, pass_it)
    (placed,) = await put(producer, b"slow")
    mark = (await shard(world, incarnation))["mark"]
    assert isinstance(mark, int) and placed.number >> 80 > mark, "it lies above the mark"
    await pass_time(consumer, 2 * MINUTE)
    (found,) = await receive(consumer)
    assert (found.body, found.id, found.due_ms) == (b"slow", placed, START_MS)


async def test_r8_the_mark_is_read_after_the_row_is_there(world: World) -> None:
    """The other order: the consumer raises the mark after the write and before the producer's look."""
    producer, consumer = world.server(), world.server()
    await create(consumer, lanes=1, producer_delay_ms=0)
    world.wait(SECOND)

    async def raise_it() -> None:
        world.wait(SECOND)
        assert bodies(await receive(consumer)) == [b"-"], "it is read, as it was written before"

    producer.store.next("write", DUES, raise_it, after=True)
    (placed,) = await put(producer, b"-")
    assert placed.number >> 80 > START_MS + 2 * SECOND, "the producer cannot know, and puts it again"


async def test_trap_a_consumer_that_reaches_now_skips_nothing_of_the_same_minute(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, producer_delay_ms=0)
    given: list[bytes] = []
    put_ones = []
    for number in range(60):
        world.wait(SECOND)
        # Before and after the consumer's look, in the same second; and one for later in the same minute.
        for name, in_ms in ((b"before", 0), (b"ahead", 300), (b"later", 20 * SECOND)):
            put_ones.append(b"%d %s" % (number, name))
            await put(server, put_ones[-1], in_ms=in_ms)
        given += await take(server)
        put_ones.append(b"%d after" % number)
        await put(server, put_ones[-1])
        given += await take(server)
    given += await drain(server, 30 * SECOND)
    assert sorted(given) == sorted(put_ones)


async def test_trap_a_due_time_in_the_past_is_given_as_soon_as_the_delay_allows(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=2)
    world.wait(HOUR)
    assert await take(server) == []
    await pass_time(server, MINUTE)
    await put(server, b"yesterday", in_ms=-24 * HOUR)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    assert delivery.body == b"yesterday" and delivery.due_ms == START_MS + MINUTE - 23 * HOUR
    (last,) = {time_of(str((await shard(world, incarnation, lane))["last"])) <= world.dial.wall_ms for lane in (0, 1)}
    assert last


@pytest.mark.parametrize("delay_ms", [0, DELAY, MINUTE])
@pytest.mark.parametrize("ahead_ms", [-4 * SECOND, 4 * SECOND, -HOUR, HOUR])
async def test_trap_clocks_of_producers_are_behind_or_ahead(world: World, ahead_ms: int, delay_ms: int) -> None:
    producer, consumer = world.server(ahead_ms=ahead_ms), world.server()
    await create(consumer, producer_delay_ms=delay_ms)
    given: list[bytes] = []
    put_ones = []
    for number in range(20):
        world.wait(SECOND)
        put_ones.append(b"%d" % number)
        await put(producer, put_ones[-1])
        given += await take(consumer)
    given += await drain(consumer, delay_ms + MINUTE)
    assert sorted(given) == sorted(put_ones)


@pytest.mark.parametrize("ahead_ms", [-4 * SECOND, 4 * SECOND, -HOUR, HOUR])
async def test_clocks_of_consumers_are_behind_or_ahead(world: World, ahead_ms: int) -> None:
    producer, consumer = world.server(), world.server(ahead_ms=ahead_ms)
    await create(consumer)
    given: list[tuple[int, bytes]] = []
    for number in range(20):
        world.wait(SECOND)
        await put(producer, b"%d" % number, in_ms=10 * SECOND)
        given += [(world.dial.wall_ms, body) for body in await take(consumer)]
    for _ in range(30):
        world.wait(SECOND)
        given += [(world.dial.wall_ms, body) for body in await take(consumer)]
    assert sorted(body for _, body in given) == sorted(b"%d" % number for number in range(20))
    for at_ms, body in given:
        due_ms = START_MS + (int(body) + 1) * SECOND + 10 * SECOND
        assert at_ms >= due_ms - limits.CLOCK_ERROR_MS, "never before its time, but for the clock error"


async def test_r5_a_clock_that_was_compared_by_a_call_that_took_long_is_not_believed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: compare what the store says with our clock before the call. One that is ahead by the wait looks right."""
    producer, consumer = world.server(), world.server(ahead_ms=20 * SECOND)
    await create(producer, lanes=1)
    await put(producer, b"-", in_ms=40 * SECOND)
    soon_ms = consumer.store.time_ms
    waits = [20 * SECOND]

    async def late_ms() -> int:
        world.wait(waits.pop() if waits else 0)
        return await soon_ms()

    monkeypatch.setattr(consumer.store, "time_ms", late_ms)
    assert await receive(consumer) == []
    assert not waits, "the clock was compared"
    world.wait(SECOND)
    assert await receive(consumer) == [], "by its clock it is due; it is not for some time"
    world.wait(20 * SECOND)
    assert bodies(await receive(consumer)) == [b"-"]


# --- unknown outcomes -----------------------------------------------------------------------------------------------


def raises_mark(change: Change) -> bool:
    return "mark" in (change.rows[0].values or {})


def takes(change: Change) -> bool:
    return "taken_at" in (change.rows[0].values or {})


@pytest.mark.parametrize("happening", [LOSE_ANSWER, NEVER_SENT, ARRIVE_LATE, UNAVAILABLE])
@pytest.mark.parametrize("times", [1, ALWAYS])
@pytest.mark.parametrize("delay_ms", [0, DELAY])
async def test_r8_an_unknown_mark_gives_nothing_that_another_could_still_be_put_before(
    world: World, happening: str, times: int, delay_ms: int
) -> None:
    server, producer = world.server(), world.server()
    await create(server, lanes=1, producer_delay_ms=delay_ms)
    await touch(server, "a")
    await put(producer, b"first", in_ms=DELAY)
    server.store.next("change", SHARDS, happening, when=raises_mark, times=times)
    world.wait(DELAY)
    given = await take(server, consumer="a")
    (placed,) = await put(producer, b"second")
    await server.store.land()
    for _ in range(30):
        world.wait(SECOND)
        await server.step(NAME)
        given += await take(server, consumer="a")
    assert set(given) == {b"first", b"second"}
    assert given.count(b"first") == given.count(b"second") == 1
    assert isinstance(placed, DueId)


@pytest.mark.parametrize("happening", [LOSE_ANSWER, NEVER_SENT, ARRIVE_LATE, UNAVAILABLE])
@pytest.mark.parametrize("times", [1, ALWAYS])
async def test_r8_an_unknown_take_is_not_believed(world: World, happening: str, times: int) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server, lanes=1)
    await put(other, b"-", in_ms=DELAY)
    server.store.next("change", SHARDS, happening, when=takes, times=times)
    share = await touch(server, "a")
    row = await shard(world, incarnation)
    if share.lanes:
        assert (row["consumer"], row["fence"]) == ("a", share.fences[0])
    await server.store.land()
    world.wait(DELAY)
    given = bodies(await receive(server, consumer="a"))
    assert given == [b"-"]
    row = await shard(world, incarnation)
    assert row["fence"] == (await touch(server, "a")).fences[0]


@pytest.mark.parametrize("happening", [LOSE_ANSWER, NEVER_SENT, ARRIVE_LATE, UNAVAILABLE])
async def test_r8_an_unknown_checkpoint_lands_late_and_moves_nothing_of_another_holder(
    world: World, happening: str
) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server, lanes=1)
    await put(server, b"one", in_ms=DELAY)
    await put(server, b"two", in_ms=DELAY + SECOND)
    world.wait(DELAY + SECOND)
    one, two = await receive(server, consumer="a")
    assert await ack(server, one) == [None]
    await touch(other, "b")
    server.store.next("change", SHARDS, happening, when=raises_mark, times=ALWAYS)
    world.wait(LOCK // 4)
    await touch(server, "a")
    await touch(other, "b")
    world.wait(LOCK)
    share = await touch(other, "b")
    assert share.lanes == (0,)
    assert await ack(server, two) != [None]
    await server.store.land()
    found = await receive(other, consumer="b")
    assert [body for body in bodies(found) if body != b"one"] == [b"two"]
    row = await shard(world, incarnation)
    assert (row["consumer"], row["fence"]) == ("b", share.fences[0])
    assert str(row["last"]) < f"{two.id}"[2:]


async def test_r8_a_mark_and_a_checkpoint_never_fall(world: World) -> None:
    servers = [world.server(ahead_ms=ahead) for ahead in (0, 4 * SECOND, -4 * SECOND)]
    incarnation = await create(servers[0], lanes=1, lock_ms=SECOND)
    before = await shard(world, incarnation)
    for number in range(60):
        server = servers[number % 3]
        await put(server, b"-")
        world.wait(700)
        await take(server, consumer=f"consumer {number % 3}")
        after = await shard(world, incarnation)
        assert after["mark"] >= before["mark"] and after["last"] >= before["last"]  # type: ignore[operator]
        assert after["fence"] >= before["fence"]  # type: ignore[operator]
        before = after


# --- what a producer is told ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [DUES, PARTS])
@pytest.mark.parametrize("happening", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE])
async def test_a_put_is_confirmed_when_row_and_index_are_there(world: World, table: Table, happening: str) -> None:
    server = world.server()
    await create(server, lanes=1)
    # Of the index's two rows the lower one.
    server.store.next("write", table, happening, when=lambda item: item.partition.key.count(".") == 2, times=3)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"-")])
    expected = Unavailable if (table, happening) == (DUES, UNAVAILABLE) else OutcomeUnknown
    assert type(outcome) is expected
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"again")])
    assert isinstance(outcome, DueId)
    world.wait(DELAY)
    found = await take(server)
    assert b"again" in found
    assert (b"-" in found) == (happening == LOSE_ANSWER or table is PARTS)


async def test_a_put_whose_mark_cannot_be_read_is_unknown(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    server.store.next("read", SHARDS, UNAVAILABLE, times=limits.READ_ATTEMPTS)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"-")])
    assert isinstance(outcome, OutcomeUnknown)


async def test_a_put_that_loses_every_race_is_unknown(world: World) -> None:
    producer, consumer = world.server(), world.server()
    await create(consumer, lanes=1, producer_delay_ms=0)

    def passing() -> Callable[[], Awaitable[None]]:
        async def pass_it() -> None:
            await put(consumer, b"other", in_ms=10 * MINUTE)
            world.wait(10 * MINUTE)
            await take(consumer)

        return pass_it

    producer.store.next("write", DUES, passing(), times=limits.PUT_ROUNDS)
    (outcome,) = await producer.put_outcomes(NAME, [NewMessage(b"-")])
    assert isinstance(outcome, OutcomeUnknown)


@pytest.mark.parametrize("by", ["this server", "another one"])
async def test_what_is_due_already_is_put_once_where_a_shard_is_being_read(world: World, by: str) -> None:
    """Naive: at now, where the reader's mark is a moment later. Then it lies there twice, and is given twice."""
    server = world.server()
    reader = server if by == "this server" else world.server()
    await create(server, lanes=1, producer_delay_ms=0)
    await put(server, b"before")
    world.wait(SECOND)
    assert await take(reader) == [b"before"]
    if reader is not server:
        await put(server, b"known now")
    world.wait(2 * limits.TIMELINE_RAISE_MS)
    found: list[bytes] = []

    async def read() -> None:
        world.wait(5)
        found.extend(await take(reader))

    server.store.next("read", SHARDS, read)
    (identity,) = await put(server, b"-", in_ms=-SECOND)
    for _ in range(10):
        world.wait(SECOND)
        found += await take(reader)
    assert [body for body in found if body == b"-"] == [b"-"]
    assert identity.number >> 80 == START_MS + SECOND + 2 * limits.TIMELINE_RAISE_MS + limits.TIMELINE_LEAD_MS


async def test_what_is_due_already_waits_for_nobody_where_no_shard_is_being_read(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, producer_delay_ms=0)
    await put(server, b"before")
    world.wait(SECOND)
    assert await take(server) == [b"before"]
    world.wait(MINUTE)
    (identity,) = await put(server, b"-")
    assert identity.number >> 80 == world.dial.wall_ms
