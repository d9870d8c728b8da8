"""Traps that a simpler design falls into; each test says which. Those of timelines and databags come with them."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, SEQUENCES, STATES
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable
from angelhair.model import NewMessage
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import DAY, HOUR, MINUTE, SECOND, World, numbers


async def test_trap_long_invisibility_holds_back_nobody(world: World) -> None:
    """Naive: one invisibility pointer that waits at the first invisible message; here message 0, for a day."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=4, visibility_timeout_ms=10 * SECOND)
    await server.put("orders", count=12)
    await server.receive("orders", 1, DAY)
    await server.receive("orders", 11)
    world.wait(12 * SECOND)
    assert numbers(await server.receive("orders", 20)) == list(range(1, 12))
    world.wait(12 * SECOND)
    got: list[int] = []
    for _ in range(4):
        got += numbers(await other.take("orders", 20))
        world.wait(SECOND)
    assert sorted(got) == list(range(1, 12))


async def test_trap_id_never_written_does_not_stop_redelivery(world: World) -> None:
    """Naive: an invisibility pointer that never moves past a message that was not delivered. Id 0 never will be."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=2, visibility_timeout_ms=5 * SECOND, repair_timeout_ms=HOUR)
    await server.engine.reserve(world.account, "orders", 1)
    await server.put("orders", count=9)
    assert numbers(await server.receive("orders", 20)) == list(range(1, 10))
    for consumer in (server, other, server):
        world.wait(8 * SECOND)
        got: list[int] = []
        for _ in range(4):
            got += numbers(await consumer.receive("orders", 20, 4 * SECOND))
        assert sorted(got) == list(range(1, 10))


async def test_trap_deleted_and_made_again_works_at_once(world: World) -> None:
    """Naive: reuse the name as the key. Old messages, old marks or a tombstone would meet the new queue."""
    server, stale = world.server(), world.server()
    for generation in range(3):
        await server.create("orders", bucket_size=2 + generation)
        assert await stale.receive("orders", 10) == []
        body = f"generation {generation}".encode()
        assert await stale.put("orders", body, body, body) == [0, 1, 2]
        assert [item.body for item in await server.receive("orders", 10)] == [body] * 3
        await server.engine.delete_queue(world.account, "orders")
    await server.create("orders")
    await server.bury()
    assert await stale.receive("orders", 10) == []
    await server.put("orders", b"still works")
    assert [item.body for item in await stale.receive("orders", 10)] == [b"still works"]


async def test_trap_what_a_deleted_queue_held_really_goes(world: World) -> None:
    """Naive: free the name and leave the rows."""
    server = world.server()
    await server.create("orders", bucket_size=1, lanes=2)
    for _ in range(4):
        await server.put("orders", count=20)
    await server.receive("orders", 10)
    await server.engine.delete_queue(world.account, "orders")
    await server.bury()
    left = await world.dump()
    # Of each lane the mark that it was deleted stays for a month, in the way of a creation that lands late.
    assert {table for table, _ in left} == {"sequences"}
    assert [rows for _, rows in left.values()] == [{"ids": {"next": 0, "deleted": 1}}] * 2
    if world.name != "cassandra":
        # Cassandra lets go of rows by its own clock: tests/contract.
        world.wait(limits.DELETED_MARK_SECONDS * SECOND + 1)
        assert await world.dump() == {}


async def test_trap_listing_shows_one_account_only(world: World) -> None:
    """Naive: one table of queues for everybody."""
    server = world.server()
    for name in ("b", "a", "orders.2", "orders.1"):
        await server.create(name)
    stranger = f"{world.account}-stranger"
    engine = server.engine
    await engine.create_queue(stranger, "theirs", (await world.queue("a")).settings)
    assert await engine.list_queues(world.account) == (["a", "b", "orders.1", "orders.2"], False)
    assert await engine.list_queues(stranger) == (["theirs"], False)
    assert await engine.list_queues(world.account, prefix="orders") == (["orders.1", "orders.2"], False)
    assert await engine.list_queues(world.account, most=3) == (["a", "b", "orders.1"], True)
    assert await engine.list_queues(world.account, after="b") == (["orders.1", "orders.2"], False)
    assert await engine.list_queues(world.account, prefix="orders", after="orders.1") == (["orders.2"], False)
    assert await engine.list_queues(f"{world.account}-nobody") == ([], False)


async def test_trap_repair_really_runs_and_buckets_really_go(world: World) -> None:
    """Naive: a worker that is written and never started, or finishes and never drops. Steps alone do it."""
    server = world.server()
    await server.create("orders", bucket_size=3, repair_timeout_ms=5 * SECOND, history_ms=0)
    await server.engine.reserve(world.account, "orders", 2)
    await server.put("orders", count=10)
    await server.drain("orders")
    for _ in range(20):
        await server.engine.step(world.account, "orders")
        await server.drain("orders")
        world.wait(SECOND)
    marks = await world.marks("orders")
    assert (marks.repair, marks.floor, marks.dropped) == (4, 4, 4)
    assert [key for key in await world.dump() if key[0] in ("bodies", "states")] == []


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT])
async def test_trap_claim_of_unknown_outcome_is_read_back(world: World, fault: str) -> None:
    """Naive: take it for lost and hide a message that nobody got; or take it for won and deliver it twice."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=30 * SECOND)
    await server.put("orders", count=2)
    server.store.next("change", STATES, fault)
    assert [(item.id.number, item.deliveries) for item in await server.receive("orders", 2)] == [(0, 1), (1, 1)]
    assert await other.receive("orders", 2) == []
    world.wait(31 * SECOND)
    server.store.next("change", STATES, fault)
    assert [(item.id.number, item.deliveries) for item in await server.receive("orders", 2)] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE, ARRIVE_LATE])
async def test_trap_nobody_received_it_and_it_is_back_after_its_time_out(world: World, fault: str) -> None:
    """Naive: forget a claim that failed. However it failed, the message is hidden no longer than its time-out."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders", count=2)
    server.store.next("change", STATES, fault, times=100)
    with pytest.raises(StoreError):
        await server.receive("orders", 2)
    server.store.heal()
    await server.store.land()
    world.wait(11 * SECOND)
    assert numbers(await server.receive("orders", 2, 0)) == [0, 1]
    world.wait(2 * SECOND)
    assert numbers(await other.receive("orders", 2)) == [0, 1]


async def test_trap_claim_that_lands_long_after_is_found(world: World) -> None:
    """The claim lands an hour after its server gave it up, when its own wake entry is long gone."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND, repair_timeout_ms=5 * SECOND, bucket_size=2)
    await server.put("orders", count=4)
    assert numbers(await other.take("orders", 1)) == [0]
    server.store.next("change", STATES, ARRIVE_LATE, times=100)
    with pytest.raises(StoreError):
        await server.receive("orders", 1)
    server.store.heal()
    await server.store.land()
    got: list[int] = []
    for _ in range(60):
        got += numbers(await other.take("orders", 10))
        await world.work("orders", MINUTE, [other], every_ms=20 * SECOND)
    assert sorted(got) == [1, 2, 3]


async def test_trap_part_of_a_group_is_taken_by_others(world: World) -> None:
    """Naive: all or nothing. Two are gone when the group is claimed; the others are handed out."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=10)
    await server.put("orders", count=6)

    async def steal() -> None:
        assert numbers(await other.receive("orders", 2)) == [0, 1]

    server.store.next("change", STATES, steal)
    assert numbers(await server.receive("orders", 6)) == [2, 3, 4, 5]


async def test_trap_bucket_becomes_final_under_a_claim(world: World) -> None:
    """Naive: claim what is new in a bucket that was settled without it. It is refused, admitted, delivered once."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND)
    await server.put("orders", count=3)

    async def settle() -> None:
        assert numbers(await other.receive("orders", 1, HOUR)) == [0]
        for _ in range(5):
            await other.receive("orders", 1, HOUR)
            await other.work("orders", 3 * SECOND)

    server.store.next("change", STATES, settle)
    got = numbers(await server.receive("orders", 3))
    assert len(got) == len(set(got))
    assert 0 not in got


@pytest.mark.parametrize("table", [SEQUENCES, BODIES])
async def test_trap_store_errors_on_put_reach_the_client(world: World, table: object) -> None:
    """Naive: catch, log, answer 200."""
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    verb = "change" if table is SEQUENCES else "write"
    server.store.next(verb, table, UNAVAILABLE, times=100)  # type: ignore[arg-type]
    try:
        (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-")])
    except Unavailable as error:
        outcome = error
    assert isinstance(outcome, Unavailable)
    server.store.heal()
    server.store.next(verb, table, LOSE_ANSWER, times=100)  # type: ignore[arg-type]
    try:
        (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-")])
    except StoreError as error:
        outcome = error
    # Ids that nobody writes are void: a put whose reservation is unknown provably did not happen.
    assert isinstance(outcome, Unavailable if table is SEQUENCES else OutcomeUnknown)


async def test_trap_reads_that_fail_reach_the_consumer(world: World) -> None:
    """Naive: answer "nothing there" when nobody could look. Afterwards nothing was skipped."""
    server = world.server()
    await server.create("orders", bucket_size=2)
    await server.put("orders", count=4)
    for table in (SEQUENCES, STATES, BODIES):
        server.store.next("read", table, UNAVAILABLE)
        with pytest.raises(Unavailable):
            await server.receive("orders", 4)
    assert numbers(await server.receive("orders", 4)) == [0, 1, 2, 3]
