"""R9 and what lasts: the index that skips empty time, rows that must not expire, parts that go, messages set aside."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.kinds.timeline import Timeline
from angelhair.engine.schema import CONSUMERS, DUES, SHARDS
from angelhair.engine.store import Span
from angelhair.engine.timeline.next_due import next_due_in_ms
from angelhair.errors import OutcomeUnknown, StaleReceipt
from angelhair.model import TIMELINE, Ask, NewMessage, WantedChange
from angelhair.stores.counting import CountingStore
from tests.faults import UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, shard, take, touch
from tests.queues import DAY, HOUR, MINUTE, SECOND, START_MS, YEAR, Server, World

LOCK = 10 * SECOND


async def parts_there(world: World, incarnation: str, lane: int, times: list[int]) -> list[int]:
    """Which of these times' parts hold rows, of a timeline of minutes."""
    spans = [Span(places.dues(incarnation, lane, time_ms // MINUTE)) for time_ms in times]
    return [time_ms for time_ms, found in zip(times, await world.store.read(spans), strict=True) if found.rows]


@pytest.mark.parametrize("granularity", ["minute", "hour", "day"])
async def test_r9_an_empty_year_costs_a_bounded_number_of_reads(world: World, granularity: str) -> None:
    server = world.server(store=(counting := CountingStore(world.store)))
    await create(server, lanes=1, granularity=granularity, expire_after_ms=None)
    await put(server, b"this year", in_ms=DELAY)
    await put(server, b"next year", in_ms=YEAR)
    world.wait(DELAY)
    assert await take(server) == [b"this year"]
    await pass_time(server, 5 * SECOND)
    world.wait(YEAR)
    before = counting.counts
    found: list[bytes] = []
    while not found:
        found = await take(server)
    spent = counting.counts - before
    assert found == [b"next year"]
    assert spent.reads <= 16, spent


@pytest.mark.parametrize("parts", [1, 2])
async def test_r9_a_look_that_brings_few_parts_goes_on_behind_them(
    world: World, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Naive: begin again with the part that the last look ended in. With one part a look it is found for ever."""
    monkeypatch.setattr(limits, "TIMELINE_INDEX_PARTS", parts)
    server = world.server()
    incarnation = await create(server, lanes=1, expire_after_ms=None)
    times = [START_MS + minutes * MINUTE for minutes in (1, 10, 20, 5_000, 9_000)]
    for time_ms in times:
        await put(server, b"%d" % time_ms, in_ms=time_ms - START_MS)
    world.wait(9_001 * MINUTE)
    found: list[bytes] = []
    for _ in range(3):
        found += await take(server)
    assert found == [b"%d" % time_ms for time_ms in times]
    await pass_time(server, 8 * SECOND)
    assert await parts_there(world, incarnation, 0, times) == []


@pytest.mark.parametrize("parts", [1, 16])
async def test_r9_when_the_next_message_is_due_is_known_behind_what_is_worked_off(
    world: World, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Naive: "now" when a look is full of parts that are worked off. Who asks would take the lock for nothing."""
    monkeypatch.setattr(limits, "TIMELINE_INDEX_PARTS", parts)
    server = world.server()
    await create(server, lanes=1, expire_after_ms=None)
    await put(server, b"first", in_ms=DELAY)
    far_ms = (START_MS + HOUR) // MINUTE * MINUTE
    await put(server, b"far", in_ms=far_ms - START_MS)
    line = Timeline(server.engine.memory).line(await world.queue(NAME))
    assert await next_due_in_ms(line) == DELAY
    world.wait(DELAY)
    assert await take(server) == [b"first"]
    await pass_time(server, 5 * SECOND)
    assert await next_due_in_ms(line) == far_ms - world.dial.wall_ms
    world.wait(2 * HOUR)
    assert await next_due_in_ms(line) == far_ms - world.dial.wall_ms


@pytest.mark.ttl_by_test_clock
async def test_r9_the_index_lives_as_long_as_what_it_leads_to(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, expire_after_ms=2 * HOUR)
    # Into one part and one span, by and by: a later life must not be cut short by an earlier one.
    other = world.server()
    await put(server, b"first", in_ms=10 * HOUR)
    world.wait(9 * HOUR)
    await put(other, b"second", in_ms=HOUR)
    await put(server, b"third", in_ms=2 * HOUR)
    world.wait(2 * HOUR + HOUR - MINUTE)
    assert sorted(await take(server)) == [b"first", b"second", b"third"]


async def test_r9_parts_go_whole_once_the_checkpoint_has_passed_them(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1, expire_after_ms=None)
    times = [START_MS + minutes * MINUTE for minutes in (1, 2, 3, 5_000, 9_000)]
    for time_ms in times:
        await put(server, b"-", in_ms=time_ms - START_MS)
    world.wait(3 * MINUTE)
    first, second, third = await receive(server)
    assert await ack(server, first, third) == [None, None]
    await pass_time(server, 8 * SECOND)
    assert await parts_there(world, incarnation, 0, times) == times, "the checkpoint stands in the first of them"
    assert await ack(server, second) == [None]
    await pass_time(server, 5 * SECOND)
    world.wait(MINUTE)
    for _ in range(2):
        assert await take(server) == []
        await pass_time(server, 8 * SECOND)
    assert await parts_there(world, incarnation, 0, times) == times[3:]
    world.wait(9_000 * MINUTE)
    assert await take(server) == [b"-", b"-"]
    await pass_time(server, 8 * SECOND)
    assert await parts_there(world, incarnation, 0, times) == []
    (index,) = await world.store.read([Span(places.parts(incarnation, 0, START_MS // MINUTE // 4_096))])
    assert list(index.rows) == []


@pytest.mark.ttl_by_test_clock
async def test_a_row_that_nobody_worked_off_is_renewed_before_it_expires(world: World) -> None:
    server = world.server(store=(counting := CountingStore(world.store)))
    await create(server, lanes=1, expire_after_ms=HOUR)
    await put(server, *[b"%d" % number for number in range(20)])
    written = counting.counts.rows_written
    # No consumer for a day: only the server's background.
    await world.work(NAME, DAY, [server], MINUTE)
    assert 20 * 24 <= counting.counts.rows_written - written <= 22 * 50
    assert sorted(await take(server)) == sorted(b"%d" % number for number in range(20))


async def test_a_row_that_was_processed_is_not_renewed(world: World) -> None:
    server = world.server(store=(counting := CountingStore(world.store)))
    await create(server, lanes=1, expire_after_ms=HOUR)
    await put(server, b"-")
    world.wait(DELAY)
    assert await take(server) == [b"-"]
    await pass_time(server, 30 * SECOND)
    before = counting.counts.rows_written
    await world.work(NAME, 2 * HOUR, [server], MINUTE)
    assert counting.counts.rows_written == before


# --- setting aside --------------------------------------------------------------------------------------------------


async def test_a_message_that_nobody_acks_does_not_hold_up_its_shard(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, visibility_timeout_ms=5 * SECOND)
    await put(server, b"poison", in_ms=DELAY)
    for batch in range(4):
        await put(server, *[b"%d" % (1_000 * batch + number) for number in range(300)], in_ms=DELAY + SECOND)
    processed: list[bytes] = []
    poisoned = 0
    for _ in range(90):
        world.wait(SECOND)
        await server.step(NAME)
        for _ in range(8):
            found = await receive(server, 100)
            poisoned += sum(delivery.body == b"poison" for delivery in found)
            good = [delivery for delivery in found if delivery.body != b"poison"]
            if good:
                assert await ack(server, *good) == [None] * len(good)
                processed += bodies(good)
    assert sorted(processed) == sorted(b"%d" % (1_000 * batch + n) for batch in range(4) for n in range(300))
    assert poisoned >= 3
    (poison,) = await server.engine.peek(world.account, NAME, 10)
    assert poison.body == b"poison" and poison.deliveries > 0 and poison.due_ms == START_MS + DELAY


async def test_what_is_set_aside_is_durable_before_the_checkpoint_passes_it(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server, consumer="a")
    server.store.next("write", DUES, UNAVAILABLE, times=1_000)
    assert await server.extend(NAME, delivery, MINUTE) is None
    world.wait(LOCK // 4)
    await touch(server, "a")
    await touch(other, "b")
    world.wait(LOCK)
    assert bodies(await receive(other, consumer="b")) == [b"-"], "it was not set aside, and so it was not passed"


async def test_a_long_delay_is_durable_and_its_receipt_still_good_for_an_ack(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, b"later", b"done", in_ms=DELAY)
    world.wait(DELAY)
    found = {delivery.body: delivery for delivery in await receive(server, consumer="a")}
    for delivery in found.values():
        assert await server.extend(NAME, delivery, 10 * MINUTE) is None
    for delivery in found.values():
        assert await server.extend(NAME, delivery, 11 * MINUTE) is None, "once more, as a consumer at work would"
    assert await ack(server, found[b"done"]) == [None]
    for _ in range(40):
        world.wait(LOCK // 4)
        await touch(server, "a")
        assert await receive(server, consumer="a") == []
    # Then its server dies, and what it had in memory is gone; when it is due stays.
    await touch(other, "b")
    world.wait(LOCK)
    assert await receive(other, consumer="b") == []
    world.wait(10 * MINUTE)
    again = await receive(other, consumer="b")
    assert {delivery.body for delivery in again} >= {b"later"}
    assert all(delivery.deliveries == 2 for delivery in again)


async def test_an_ack_of_what_was_set_aside_keeps_it_from_coming_again(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    assert await server.extend(NAME, delivery, MINUTE) is None
    assert await ack(server, delivery) == [None]
    for _ in range(90):
        world.wait(SECOND)
        await server.step(NAME)
        assert await receive(server) == []
    assert (await server.engine.stats(world.account, NAME)).visible == 0


async def test_released_with_nothing_a_message_comes_again_at_once(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    assert await receive(server) == []
    assert await server.extend(NAME, delivery, 0) is None
    (again,) = await receive(server)
    assert again.deliveries == 2
    assert isinstance(await server.extend(NAME, delivery, SECOND), StaleReceipt)


async def test_a_body_is_never_changed(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    (outcome,) = await server.engine.change(world.account, NAME, [WantedChange(delivery.receipt, body=b"new")])
    assert "body" in str(outcome)


# --- dead letters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bucketed", TIMELINE])
async def test_what_is_delivered_too_often_goes_to_the_dead_letters(world: World, kind: str) -> None:
    server = world.server()
    more = {"producer_delay_ms": 0} if kind == TIMELINE else {}
    await server.create("dead", kind=kind, **more)
    await create(server, lanes=1, visibility_timeout_ms=SECOND, max_deliveries=3, dead_letter_queue="dead")
    (placed,) = await put(server, b"poison", in_ms=DELAY)
    await put(server, b"good", in_ms=DELAY)
    world.wait(DELAY)
    deliveries = 0
    for _ in range(10):
        found = await receive(server)
        good = [delivery for delivery in found if delivery.body == b"good"]
        assert await ack(server, *good) == [None] * len(good)
        deliveries += len(found) - len(good)
        world.wait(SECOND)
        await server.step(NAME)
    assert deliveries == 3
    (dead,) = await server.receive("dead", 10)
    assert (dead.body, dead.origin) == (b"poison", f"{world.account}/{NAME}/{placed}")
    assert await server.engine.peek(world.account, NAME, 10) == []


async def test_without_the_dead_letter_queue_a_message_comes_again(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue="missing")
    await put(server, b"poison", in_ms=DELAY)
    deliveries = 0
    for _ in range(120):
        world.wait(SECOND)
        await server.step(NAME)
        deliveries += len(await receive(server))
    assert deliveries >= 5, "again and again (A1)"
    await server.create("missing")
    for _ in range(60):
        world.wait(SECOND)
        await server.step(NAME)
        await receive(server)
    assert bodies(await server.receive("missing", 10)) == [b"poison"]


async def test_deliveries_are_counted_over_a_consumer_that_falls_silent(world: World) -> None:
    first, second = world.server(), world.server()
    await create(first, lanes=1, visibility_timeout_ms=5 * SECOND)
    await put(first, b"-", in_ms=DELAY)
    world.wait(DELAY)
    assert [delivery.deliveries for delivery in await receive(first, consumer="a")] == [1]
    await pass_time(first, LOCK + SECOND)
    again: list[int] = []
    for _ in range(30):
        world.wait(SECOND)
        again += [delivery.deliveries for delivery in await receive(second, consumer="b")]
    assert again[:1] == [2]


async def test_stats_and_peek_tell_what_is_due_and_what_is_not(world: World) -> None:
    server = world.server()
    await create(server)
    await put(server, b"due", b"flying", in_ms=DELAY)
    await put(server, b"tomorrow", in_ms=DAY)
    await put(server, b"in a year", in_ms=YEAR)
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.visible, stats.delayed, stats.in_flight, stats.exact) == (0, 4, 0, True)
    world.wait(DELAY + MINUTE)
    assert len(await receive(server, 1)) == 1
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.visible, stats.delayed, stats.in_flight) == (1, 2, 1)
    assert stats.oldest_age_ms == MINUTE
    peeked = await server.engine.peek(world.account, NAME, 3)
    assert [seen.body for seen in peeked][2:] == [b"tomorrow"]
    seen = await server.engine.shards(world.account, NAME)
    assert [one.lane for one in seen] == [0, 1, 2, 3, 4, 5] and {one.state for one in seen} == {"open"}
    assert {one.waiting_since_ms for one in seen} == {None, START_MS + DELAY}


async def test_who_does_not_hold_a_shard_does_not_say_that_its_counts_are_exact(world: World) -> None:
    """Naive: what another server has been acked, or has given, is counted as visible, and that is called exact."""
    first, second = world.server(), world.server()
    await create(first, lanes=1)
    await put(first, b"acked", b"flying", in_ms=DELAY)
    await put(first, b"tomorrow", in_ms=DAY)

    async def counted(server: Server) -> tuple[int, int, int, bool]:
        stats = await server.engine.stats(world.account, NAME)
        return stats.visible, stats.in_flight, stats.delayed, stats.exact

    world.wait(DELAY)
    assert await counted(first) == await counted(second) == (2, 0, 1, True), "nobody holds it"
    found = await receive(first, 2, consumer="ann")
    assert await ack(first, found[0]) == [None]
    assert await counted(first) == (0, 1, 1, True)
    assert await counted(second) == (2, 0, 1, False)
    assert await ack(first, found[1]) == [None]
    await pass_time(first, LOCK)
    assert (await touch(first, "ann")).lanes
    assert await counted(first) == await counted(second) == (0, 0, 1, True), "what is not due nobody can have"
    await first.engine.leave_consumer(world.account, NAME, "ann")
    await put(first, b"again", in_ms=DELAY)
    world.wait(DELAY)
    assert await counted(second) == (1, 0, 1, True), "it was given back"


async def test_what_was_due_long_ago_has_waited_since_it_could_first_be_delivered(world: World) -> None:
    """Naive: now less the due time. A message put a moment ago for 2020 would be years late, and ring every bell. Also
    naive: since its put. For all of the producer delay nothing would wait, then it would be a minute late at once."""
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"long ago", in_ms=-3 * YEAR)
    world.wait(DELAY + MINUTE)
    (seen,) = await server.engine.shards(world.account, NAME)
    assert seen.waiting_since_ms == START_MS + DELAY
    assert (await server.engine.stats(world.account, NAME)).oldest_age_ms == MINUTE
    await server.engine.change_queue(world.account, NAME, {"producer_delay_ms": DAY})
    (seen,) = await server.engine.shards(world.account, NAME)
    assert seen.waiting_since_ms == START_MS + DELAY, "what holds for messages of tomorrow says nothing of this one"
    await server.engine.change_queue(world.account, NAME, {"producer_delay_ms": DELAY})
    await put(server, b"in time", in_ms=DELAY)
    world.wait(DELAY + SECOND)
    assert await take(server, 1) == [b"long ago"]
    await pass_time(server, LOCK)
    (seen,) = await server.engine.shards(world.account, NAME)
    assert seen.waiting_since_ms == START_MS + 2 * DELAY + MINUTE


async def test_store_errors_reach_who_asks_and_stop_nothing_else(world: World) -> None:
    server = world.server()
    await create(server, lanes=2)
    server.store.next("write", CONSUMERS, UNAVAILABLE, times=3)
    (outcome,) = await server.engine.receive(world.account, NAME, [Ask(1)])
    assert isinstance(outcome, Exception)
    server.store.next("read", SHARDS, UNAVAILABLE)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"-")])
    assert not isinstance(outcome, OutcomeUnknown), "a read after the write is tried again"
    world.wait(DELAY)
    assert await take(server) == [b"-"]
    assert (await shard(world, (await world.queue(NAME)).incarnation))["fence"] == 1
