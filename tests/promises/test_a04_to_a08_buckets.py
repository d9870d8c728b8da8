"""A4 to A8: ids and their buckets, closing, late writes, ids that are never written, and the repair mark."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.puts import Reservation
from angelhair.engine.schema import BODIES, POINTERS, SEQUENCES, STATES
from angelhair.errors import InvalidRequest, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import HOUR, MINUTE, SECOND, Server, World, numbers

# --- A4: ids grow, and name their bucket ------------------------------------------------------------------------------


async def test_a04_ids_grow_by_one_and_lie_in_their_bucket(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=20)
    assert await server.put("orders", count=19) == list(range(19))
    assert await server.put("orders", count=30) == list(range(19, 49))
    for bucket, expected in [(0, range(20)), (1, range(20, 40)), (2, range(40, 49))]:
        _, bodies = await world.bucket("orders", bucket)
        assert sorted(bodies) == list(expected)


async def test_a04_no_id_is_given_twice(world: World) -> None:
    """Naive: read, add, write. Several servers at once, each from its own idea of where the sequence stands."""
    servers = [world.server() for _ in range(4)]
    await servers[0].create("orders", bucket_size=7)
    rounds = [server.put("orders", count=3) for _ in range(4) for server in servers]
    given = [number for group in await asyncio.gather(*rounds) for number in group]
    assert sorted(given) == list(range(48))


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT])
async def test_a04_reservation_of_unknown_outcome(world: World, fault: str) -> None:
    """Naive: take ids again after a time-out, and call the first ones void, or use ids that were never taken."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders")
    server.store.next("change", SEQUENCES, fault)
    assert await server.put("orders", count=2) == [1, 2]
    assert await other.put("orders") == [3]


async def test_a04_reservation_that_lands_after_others_reserved(world: World) -> None:
    """Naive: add to whatever is there. A late one must not move a sequence that others have moved meanwhile."""
    server, other = world.server(), world.server()
    await server.create("orders")
    server.store.next("change", SEQUENCES, ARRIVE_LATE, times=100)
    with pytest.raises(Unavailable):
        await server.put("orders", count=5)
    assert await other.put("orders", count=3) == [0, 1, 2]
    await server.store.land()
    server.store.heal()
    assert await other.put("orders") == [3]
    assert await server.put("orders") == [4]


async def test_a04_lost_answer_overtaken_by_another_server(world: World) -> None:
    """Our reservation landed, its answer was lost, and another server reserved on top of it before we asked again.

    The row no longer shows whose ids those were; they stay void, and we take others. Naive: take "not applied" for
    "not ours" and use the same ids all the same.
    """
    server, other = world.server(), world.server()
    await server.create("orders")
    await other.put("orders")
    server.store.next("change", SEQUENCES, LOSE_ANSWER)
    given = []

    async def overtake() -> None:
        given.extend(await other.put("orders"))

    server.store.next("change", SEQUENCES, overtake)
    given += await server.put("orders", count=2)
    assert len(set(given)) == len(given)
    assert given == [3, 4, 5]


# --- A5: closing ------------------------------------------------------------------------------------------------------


async def test_a05_full_and_handed_out_is_closed(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=4)
    await server.put("orders", count=4)
    await server.receive("orders", 3)
    assert (await world.marks("orders")).reader == 0
    await server.receive("orders", 3)
    assert (await world.marks("orders")).reader == 1


async def test_a05_passed_by_the_sequence_and_handed_out_is_closed(world: World) -> None:
    """Naive: close at once and leave a write that is a millisecond late to repair; or wait for ever."""
    server = world.server()
    await server.create("orders", bucket_size=4)
    await server.engine.reserve(world.account, "orders", 1)
    await server.put("orders", count=4)
    assert numbers(await server.receive("orders", 10)) == [1, 2, 3, 4]
    assert (await world.marks("orders")).reader == 0
    world.wait(3 * SECOND)
    await server.receive("orders", 10)
    world.wait(3 * SECOND)
    await server.receive("orders", 10)
    assert (await world.marks("orders")).reader == 1


async def test_a05_not_passed_by_the_sequence_is_not_closed(world: World) -> None:
    """Naive: close whatever is handed out. More ids of this bucket are still to come."""
    server = world.server()
    await server.create("orders", bucket_size=4)
    await server.put("orders", count=3)
    for _ in range(5):
        await server.receive("orders", 10)
        world.wait(10 * SECOND)
    assert (await world.marks("orders")).reader == 0


async def test_a05_what_is_in_hand_keeps_its_bucket_open(world: World) -> None:
    """Naive: count what was read as handed out. A server that reads ahead holds messages that nobody has."""
    server = world.server()
    await server.create("orders", bucket_size=4)
    await server.put("orders", count=12)
    assert numbers(await server.receive("orders", 5)) == [0, 1, 2, 3, 4]
    assert (await world.marks("orders")).reader == 1
    assert numbers(await world.server().receive("orders", 10)) == list(range(5, 12))


async def test_a05_worker_leaves_a_bucket_open_that_is_being_written(world: World) -> None:
    """Naive: close what holds nothing. Its ids were taken a moment ago, and their writes are on the way."""
    server, worker = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=HOUR)
    await server.engine.reserve(world.account, "orders", 1)
    reservation = await server.engine.reserve(world.account, "orders", 2)
    server.store.next("write", BODIES, lambda: worker.work("orders", SECOND))
    outcomes = await server.engine.put_reserved(reservation, [NewMessage(b"-")] * 2)
    assert not any(isinstance(outcome, Exception) for outcome in outcomes)
    assert (await world.marks("orders")).reader == 0
    assert numbers(await server.receive("orders", 2)) == [1, 2]


async def test_a05_a_mark_that_cannot_be_raised_loses_nothing(world: World) -> None:
    """The deliveries in hand matter more than the mark, which the next receive raises."""
    server = world.server()
    await server.create("orders", bucket_size=4)
    await server.put("orders", count=4)
    server.store.next("change", POINTERS, UNAVAILABLE)
    assert len(await server.receive("orders", 4)) == 4
    await server.receive("orders", 4)
    assert (await world.marks("orders")).reader == 1


# --- A6 and A7: late, and never ---------------------------------------------------------------------------------------


async def closed_with_a_gap(server: Server, missing: int = 1, **settings: int) -> None:
    """Id 0 is taken and not written; the rest of bucket 0 is delivered and acked, and the reader has closed it."""
    chosen = {"bucket_size": 4, "repair_timeout_ms": 30 * SECOND, **settings}
    await server.create("orders", **chosen)
    await server.engine.reserve(server.world.account, "orders", missing)
    await server.put("orders", count=5)
    await server.take("orders", 10)
    for _ in range(2):
        server.world.wait(3 * SECOND)
        await server.receive("orders", 10)
    assert (await server.world.marks("orders")).reader == 1


async def write_late(server: Server, number: int, body: bytes = b"late") -> MessageId:
    queue = await server.engine.find_queue(server.world.account, "orders")
    lane = server.engine.memory.lane(queue, 0)
    (outcome,) = await server.engine.put_reserved(Reservation(queue, lane, number), [NewMessage(body)])
    assert isinstance(outcome, MessageId)
    return outcome


async def test_a06_late_write_is_found_by_repair_and_delivered_once(world: World) -> None:
    """Naive: no repair. The reader has closed the bucket and never looks there again."""
    server = world.server()
    await closed_with_a_gap(server, missing=2)
    assert await write_late(server, 0) == MessageId(0, 0)
    assert await server.receive("orders") == []
    await server.work("orders", 32 * SECOND)
    assert [(item.id.number, item.body) for item in await server.drain("orders")] == [(0, b"late")]
    await server.work("orders", 2 * MINUTE, every_ms=10 * SECOND)
    assert await server.drain("orders") == []


async def test_a06_repair_and_putter_admit_at_the_same_time(world: World) -> None:
    """Naive: each republishes what it finds. Both admit the same row, and it is there once."""
    server, putter = world.server(), world.server()
    await closed_with_a_gap(server)
    putter.store.next("read", POINTERS, lambda: server.work("orders", 40 * SECOND))
    assert await write_late(putter, 0) == MessageId(0, 0)
    assert numbers(await server.drain("orders") + await putter.drain("orders")) == [0]


async def test_a06_putter_admits_while_repair_does(world: World) -> None:
    """The same, met one step later: both have found the row absent, and both insert it."""
    server, putter = world.server(), world.server()
    await closed_with_a_gap(server)
    await server.work("orders", 25 * SECOND)
    other = world.server()
    server.store.next("change", STATES, lambda: write_late_ignoring(other), when=lambda change: bool(change.rows))
    _, bodies = await world.bucket("orders", 0)
    assert 0 not in bodies
    putter.store.next("read", POINTERS, lambda: server.work("orders", 10 * SECOND))
    assert (await write_late(putter, 0)).number == 0
    assert numbers(await server.drain("orders") + await putter.drain("orders")) == [0]


async def write_late_ignoring(server: Server) -> None:
    await write_late(server, 0)


async def test_a06_admission_of_unknown_outcome(world: World) -> None:
    """Naive: put it again under a new id after a time-out, and have it twice."""
    server = world.server()
    await closed_with_a_gap(server, visibility_timeout_ms=60 * MINUTE)
    await server.put("orders", count=3)
    await server.receive("orders", 10)
    await server.work("orders", 40 * SECOND)
    world_marks = await world.marks("orders")
    assert world_marks.final >= 1
    server.store.next("change", STATES, LOSE_ANSWER, when=lambda change: bool(change.rows))
    outcome = await write_late(server, 0)
    assert numbers(await server.drain("orders")) == [outcome.number]


async def test_a06_bytes_without_confirmation_are_delivered_all_the_same(world: World) -> None:
    """Written after everybody had looked, by a put that died: found when somebody looks into the bucket again."""
    server, dying = world.server(), world.server()
    await server.create("orders", bucket_size=4, repair_timeout_ms=10 * SECOND, visibility_timeout_ms=60 * MINUTE)
    reservation = await dying.engine.reserve(world.account, "orders", 1)
    await server.put("orders", count=4)
    assert numbers(await server.receive("orders", 10)) == [1, 2, 3, 4]
    for _ in range(3):
        await server.work("orders", 5 * SECOND)
        await server.receive("orders")
    await server.work("orders", 10 * SECOND)
    assert (await world.marks("orders")).settled == 1
    dying.store.next("read", POINTERS, UNAVAILABLE, times=100)
    (outcome,) = await dying.engine.put_reserved(reservation, [NewMessage(b"unconfirmed")])
    assert isinstance(outcome, Exception)
    await server.work("orders", 5 * SECOND)
    assert [item.body for item in await server.receive("orders", 10)] == [b"unconfirmed"]


async def test_a07_never_written_is_declared_dead_after_the_time_out(world: World) -> None:
    """Naive: wait for ever, or not at all."""
    server = world.server()
    await closed_with_a_gap(server, repair_timeout_ms=60 * SECOND)
    await server.work("orders", 58 * SECOND)
    assert (await world.marks("orders")).final == 0
    await server.work("orders", 5 * SECOND)
    marks = await world.marks("orders")
    assert (marks.final, marks.settled, marks.repair) == (1, 1, 1)


async def test_a07_full_buckets_need_no_patience(world: World) -> None:
    """Nobody is missing, so nobody is waited for."""
    server = world.server()
    await server.create("orders", bucket_size=4, repair_timeout_ms=60 * MINUTE)
    await server.put("orders", count=9)
    await server.drain("orders")
    await server.work("orders", 3 * SECOND)
    assert (await world.marks("orders")).repair == 2


async def test_a07_time_out_is_watched_anew_after_a_takeover(world: World) -> None:
    """Naive: compare wall clocks. A new worker with a fast clock would call ids dead that are on their way (R5)."""
    first, second = world.server(), world.server(ahead_ms=60 * MINUTE)
    await closed_with_a_gap(first)
    await first.work("orders", 25 * SECOND)
    await second.work("orders", 25 * SECOND)
    assert (await world.marks("orders")).final == 0
    await second.work("orders", 20 * SECOND)
    assert (await world.marks("orders")).final == 1


async def test_a07_each_counts_what_it_has_seen_itself(world: World) -> None:
    """Naive: count what another worker saw, or forget with every lost lease what one has seen: two workers that take
    turns more often than the time-out lasts would never repair anything. Marks only rise: what one saw stays true."""
    first, second = world.server(), world.server()
    await closed_with_a_gap(first, repair_timeout_ms=60 * SECOND)
    await world.work("orders", 10 * SECOND, [first, second])
    await second.work("orders", 25 * SECOND)
    await first.work("orders", 20 * SECOND)
    assert (await world.marks("orders")).final == 0
    await first.work("orders", 10 * SECOND)
    assert (await world.marks("orders")).final == 1


# --- A8: the repair mark ----------------------------------------------------------------------------------------------


async def test_a08_never_passes_an_incomplete_bucket(world: World) -> None:
    """Naive: pass what is settled. Bucket 1 is finished early; bucket 0 has one message in flight."""
    server = world.server()
    await server.create("orders", bucket_size=2, visibility_timeout_ms=10 * MINUTE)
    await server.put("orders", count=6)
    deliveries = await server.receive("orders", 6)
    await server.ack("orders", *deliveries[1:])
    await server.work("orders", MINUTE, every_ms=5 * SECOND)
    marks = await world.marks("orders")
    assert (marks.repair, marks.settled) == (0, 3)
    states, _ = await world.bucket("orders", 1)
    assert states.flags.get("finished") is not None
    await server.ack("orders", deliveries[0])
    await server.work("orders", 10 * SECOND)
    assert (await world.marks("orders")).repair == 3


async def test_a08_operator_moves_it_back_and_it_comes_again(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=2)
    await server.put("orders", count=6)
    await server.drain("orders")
    await server.work("orders", 5 * SECOND)
    assert await server.engine.move_back(world.account, "orders", 0, 7) == 3
    assert await server.engine.move_back(world.account, "orders", 0, 1) == 1
    assert (await world.marks("orders")).repair == 1
    await server.work("orders", 5 * SECOND)
    assert (await world.marks("orders")).repair == 3
    with pytest.raises(InvalidRequest, match="no lane 5"):
        await server.engine.move_back(world.account, "orders", 5, 0)


async def test_a08_final_flag_and_mark_of_unknown_outcome(world: World) -> None:
    """Naive: go on as if it had been set. Every step may be lost, repeated or done by two."""
    server = world.server()
    await closed_with_a_gap(server)
    await server.work("orders", 25 * SECOND)
    server.store.next("change", STATES, LOSE_ANSWER)
    server.store.next("change", POINTERS, LOSE_ANSWER, times=3)
    await server.work("orders", 10 * SECOND)
    marks = await world.marks("orders")
    assert (marks.final, marks.settled, marks.repair) == (1, 1, 1)


@pytest.mark.parametrize("table", [STATES, POINTERS, BODIES])
async def test_a08_worker_that_fails_anywhere_goes_on_later(world: World, table: object) -> None:
    """Naive: advance the mark over a bucket whose handling failed."""
    server = world.server()
    await closed_with_a_gap(server)
    await write_late(server, 0)
    for _ in range(45):
        verb = "read" if table is BODIES else "change"
        rule = server.store.next(verb, table, UNAVAILABLE)  # type: ignore[arg-type]
        try:
            await server.step("orders")
        except Unavailable:
            pass
        server.store.heal()
        assert rule.happened <= 1
        await server.step("orders")
        marks = await world.marks("orders")
        assert marks.repair <= marks.settled <= marks.final <= marks.reader
        world.wait(SECOND)
    assert numbers(await server.drain("orders")) == [0]
    await server.work("orders", MINUTE)
    assert (await world.marks("orders")).repair == 1
