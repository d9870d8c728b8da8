"""W1 to W4: rows of a timeline lie under (queue, part of time, shard), by a time UUID, and are never deleted."""

from __future__ import annotations

import time

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.store import Row, Span
from angelhair.errors import InvalidRequest
from angelhair.model import PART_MS, TIMELINE, DueId, MessageId, NewMessage, QueueSettings
from angelhair.stores.counting import CountingStore
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, take
from tests.queues import DAY, HOUR, MINUTE, SECOND, START_MS, YEAR, World


async def rows(world: World, incarnation: str, lane: int, part: int) -> list[Row]:
    (found,) = await world.store.read([Span(places.dues(incarnation, lane, part))])
    return list(found.rows)


async def test_w1_processing_deletes_nothing(world: World) -> None:
    server = world.server(store=(counting := CountingStore(world.store)))
    incarnation = await create(server, lanes=1)
    await put(server, b"a", b"b", b"c")
    world.wait(DELAY)
    assert sorted(await take(server)) == [b"a", b"b", b"c"]
    await pass_time(server, 2 * MINUTE)
    assert await receive(server) == []
    assert counting.counts.drops == 0
    assert len(await rows(world, incarnation, 0, (START_MS + DELAY) // MINUTE)) == 3


@pytest.mark.ttl_by_test_clock
async def test_w1_rows_expire_by_themselves(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1, expire_after_ms=HOUR)
    await put(server, b"a")
    world.wait(DELAY)
    assert await take(server) == [b"a"]
    part = (START_MS + DELAY) // MINUTE
    await pass_time(server, 59 * MINUTE)
    assert len(await rows(world, incarnation, 0, part)) == 1
    await pass_time(server, 3 * MINUTE)
    assert await rows(world, incarnation, 0, part) == []
    for partition in (places.spans(incarnation, 0), places.parts(incarnation, 0, part // limits.TIMELINE_SPAN_PARTS)):
        world.wait(DAY)
        (found,) = await world.store.read([Span(partition)])
        assert list(found.rows) == []


@pytest.mark.parametrize("granularity", ["minute", "hour", "day"])
async def test_w2_rows_lie_in_the_part_of_their_time_by_a_time_uuid(world: World, granularity: str) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1, granularity=granularity)
    ids = [*await put(server, b"second", in_ms=2 * DAY), *await put(server, b"first", in_ms=2 * DAY - 1)]
    found = []
    for part in sorted({(START_MS + 2 * DAY - early) // PART_MS[granularity] for early in (0, 1)}):
        found += await rows(world, incarnation, 0, part)
    assert [row.values["body"] for row in found] == [b"first", b"second"]
    for row, expected in zip(found, reversed(ids), strict=True):
        digits = str(row.key).replace("-", "")
        assert str(row.key)[14] == "7" and str(row.key)[19] in "89ab", "a UUID of version 7"
        assert int(digits, 16) == expected.number
        assert int(digits[:12], 16) == row.values["due"]


async def test_w2_granularity_is_fixed(world: World) -> None:
    server = world.server()
    await create(server)
    with pytest.raises(InvalidRequest, match="granularity"):
        await server.engine.change_queue(world.account, NAME, {"granularity": "day"})


async def test_w3_the_shard_is_the_second_of_the_due_time(world: World) -> None:
    server = world.server()
    await create(server, lanes=6)
    for second in range(12):
        due_ms = START_MS + MINUTE + second * SECOND
        (found,) = await put(server, b"-", in_ms=MINUTE + second * SECOND)
        assert found.lane == due_ms // SECOND % 6


async def test_w3_six_shards_unless_the_queue_says_otherwise(world: World) -> None:
    server = world.server()
    assert len((await server.create("six", kind=TIMELINE)).lanes) == 6
    assert len((await server.create("many", kind=TIMELINE, lanes=100)).lanes) == 100
    assert QueueSettings().lanes == 1
    for wrong in (0, 1_025):
        with pytest.raises(InvalidRequest, match="lanes"):
            await server.create("wrong", kind=TIMELINE, lanes=wrong)


async def test_w3_a_second_that_holds_very_many_is_spread(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TIMELINE_SECOND_MESSAGES", 10)
    server = world.server()
    await create(server, lanes=3)
    ids = await put(server, *[b"%d" % number for number in range(60)], in_ms=MINUTE)
    by_lane = [sum(found.lane == lane for found in ids) for lane in range(3)]
    assert by_lane == [20, 20, 20]
    world.wait(MINUTE)
    assert len(await take(server)) == 60


async def test_w4_a_message_that_is_due_now_is_written_ahead_by_the_producer_delay(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, producer_delay_ms=MINUTE)
    (now,) = await put(server, b"now")
    (soon,) = await put(server, b"soon", in_ms=30 * SECOND)
    (later,) = await put(server, b"later", in_ms=2 * MINUTE)
    times = [found.number >> 80 for found in (now, soon, later)]
    assert times == [START_MS + MINUTE, START_MS + MINUTE, START_MS + 2 * MINUTE]
    await pass_time(server, MINUTE - 1)
    assert await receive(server) == []
    world.wait(1)
    found = await receive(server)
    assert {delivery.body: delivery.due_ms for delivery in found} == {
        b"now": START_MS, b"soon": START_MS + 30 * SECOND
    }


async def test_w4_without_a_delay_a_message_is_given_at_once(world: World) -> None:
    server = world.server()
    await create(server, producer_delay_ms=0)
    world.wait(SECOND)
    await put(server, b"now")
    assert await take(server) == [b"now"]
    # The consumer has been at this very time: the next one lies behind it, by a hair.
    await put(server, b"again")
    assert await take(server) == []
    world.wait(limits.TIMELINE_RAISE_MS)
    assert await take(server) == [b"again"]


async def test_a_delay_is_a_due_time(world: World) -> None:
    server = world.server()
    await create(server)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"-", delay_ms=10 * MINUTE)])
    assert isinstance(outcome, DueId) and outcome.number >> 80 == START_MS + 10 * MINUTE
    await pass_time(server, 10 * MINUTE - 1)
    assert await receive(server) == []
    world.wait(1)
    (delivery,) = await receive(server)
    assert delivery.id == outcome and delivery.due_ms == START_MS + 10 * MINUTE
    assert MessageId.parse(str(outcome)) == outcome and isinstance(MessageId.parse(str(outcome)), DueId)


async def test_what_no_ttl_can_express_is_refused_with_the_bound(world: World) -> None:
    # The bound is a date: Cassandra counts it by its own clock, so that the test's must not lie years behind it.
    now_ms = time.time_ns() // 1_000_000
    world.wait(now_ms - START_MS)
    server = world.server()
    await create(server)
    near, late, far = [NewMessage(b"-", due_ms=now_ms + years * YEAR) for years in (5, 15, 20)]
    good, *bad = await server.put_outcomes(NAME, [near, late, far])
    assert isinstance(good, DueId)
    for refused in bad:
        # Cassandra's own words for what lies behind 2038 would be that it is not available, for ever.
        assert isinstance(refused, InvalidRequest) and refused.field == "due"
        assert "none that expires can be kept beyond January 2038" in str(refused)
        assert "20 years" not in str(refused), "that would be later: one of the two says when"
        assert "made with an expire_after of null" in str(refused), "and what to do about it"
        days = int(str(refused).partition(" days from now")[0].rpartition(" ")[2])
        due_ms = [now_ms + more * DAY for more in (days, days + 2)]
        good, beyond = await server.put_outcomes(NAME, [NewMessage(b"-", due_ms=each) for each in due_ms])
        assert isinstance(good, DueId) and isinstance(beyond, InvalidRequest), "what it says is true"
    (refused,) = await server.put_outcomes(NAME, [NewMessage(b"-", delay_ms=15 * YEAR)])
    assert isinstance(refused, InvalidRequest) and refused.field == "delay", "what was given, not what became of it"


async def test_years_ahead_a_message_is_given_when_it_is_due(world: World) -> None:
    server = world.server()
    await create(server, expire_after_ms=None, granularity="day")
    await put(server, b"fifty years", in_ms=50 * YEAR)
    world.wait(50 * YEAR - 1)
    assert await receive(server) == []
    world.wait(1)
    found = await receive(server)
    assert bodies(found) == [b"fifty years"]
    assert await ack(server, *found) == [None]


async def test_attributes_and_origin_come_along(world: World) -> None:
    server = world.server()
    await create(server)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"-", "{}", origin="a/b/0-1")])
    assert isinstance(outcome, DueId)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    assert (delivery.attributes, delivery.origin, delivery.deliveries) == ("{}", "a/b/0-1", 1)
    assert delivery.enqueued_at_ms == START_MS and delivery.first_delivered_at_ms == START_MS + DELAY


async def test_the_rows_of_two_servers_never_collide(world: World) -> None:
    first, second = world.server(), world.server()
    await create(first, lanes=1)
    ids = [found for server in (first, second) for found in await put(server, *[b"-"] * 100, in_ms=MINUTE)]
    assert len(set(ids)) == 200
    world.wait(MINUTE)
    assert len(await take(first)) == 200
