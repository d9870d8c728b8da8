"""R10, R12 of fifo queues: one message for one key within the window, whoever dies, races or hears nothing."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.batching.batching import Batching
from angelhair.engine.schema import LOGS
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import MessageId
from angelhair.server.runtime import AsyncioRuntime
from angelhair.stores.counting import CountingStore
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.promises.fifo import QUEUE, bodies, make, message, put, put_one
from tests.queues import MINUTE, SECOND, World


async def test_r10_a_key_is_one_message_before_and_after_it_was_acked(world: World) -> None:
    server = world.server()
    await make(server)
    first = await put_one(server, "a", key="k")
    assert await put_one(server, "other words", key="k") == first
    assert bodies(await server.drain(QUEUE)) == ["a"]
    assert await put_one(server, "a", key="k") == first
    assert await server.drain(QUEUE) == []


async def test_r10_the_same_key_twice_in_one_put_is_one_message(world: World) -> None:
    server = world.server()
    await make(server)
    outcomes = await server.put_outcomes(QUEUE, [message("a", key="k"), message("b"), message("c", key="k")])
    assert outcomes == [MessageId(0, 0), MessageId(0, 1), MessageId(0, 0)]
    assert bodies(await server.drain(QUEUE)) == ["a", "b"]


async def test_r10_a_key_is_free_when_its_window_is_over_and_the_clocks_error_too(world: World) -> None:
    server = world.server()
    await make(server, dedup_window_ms=5 * MINUTE)
    first = await put_one(server, "a", key="k")
    world.wait(5 * MINUTE)
    assert await put_one(server, "a", key="k") == first
    world.wait(2 * limits.CLOCK_ERROR_MS + 1)
    assert await put_one(server, "a", key="k") == MessageId(0, 1)


@pytest.mark.parametrize("scope", ["queue", "group"])
async def test_r10_the_scope_of_a_key(world: World, scope: str) -> None:
    server = world.server()
    await make(server, dedup_scope=scope)
    first = await put_one(server, "a", "one", key="k")
    second = await put_one(server, "a", "two", key="k")
    assert (first == second) is (scope == "queue")
    assert await put_one(server, "a", "one", key="k") == first


async def test_r10_a_restarted_server_knows_the_keys_of_buckets_that_are_done_with(world: World) -> None:
    first = world.server()
    await make(first, bucket_size=2, history_ms=0)
    ids = [await put_one(first, f"m{number}") for number in range(9)]
    await first.drain(QUEUE)
    await first.work(QUEUE, 10 * SECOND)
    assert (await world.marks(QUEUE)).repair == 4
    second = world.server()
    assert [await put_one(second, f"m{number}") for number in range(9)] == ids
    await second.work(QUEUE, 6 * MINUTE, every_ms=20 * SECOND)
    marks = await world.marks(QUEUE)
    assert (marks.floor, marks.dropped) == (4, 4), "and when the window is over, they go"
    assert await put_one(second, "m0") == MessageId(0, 9)


async def test_r12_two_servers_race_for_one_key_and_for_the_same_place(world: World) -> None:
    first, second = world.server(), world.server()
    await make(first, bucket_size=3)
    await put(second, "before")

    async def meanwhile() -> None:
        assert await put_one(second, "a", key="k") == MessageId(0, 2)
        assert await put_one(second, "b") == MessageId(0, 3)

    await put(first, "warm")
    first.store.next("change", LOGS, meanwhile)
    outcomes = await first.put_outcomes(QUEUE, [message("c", key="k"), message("d")])
    assert outcomes[0] != outcomes[1]
    taken = bodies(await first.drain(QUEUE))
    assert sorted(taken) == sorted({*taken}) and {"b", "d"} <= {*taken}
    assert ("a" in taken) != ("c" in taken)


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT])
@pytest.mark.parametrize("times", [1, 9])
async def test_r10_a_put_of_unknown_outcome_is_one_message_in_the_end(world: World, fault: str, times: int) -> None:
    server = world.server()
    await make(server)
    await put(server, "first")
    rule = server.store.next("change", LOGS, fault, times=times)
    outcome = await put_one(server, "a")
    assert isinstance(outcome, MessageId) or (times > 1 and isinstance(outcome, OutcomeUnknown))
    rule.times = 0
    again = await put_one(server, "a")
    assert again == MessageId(0, 1)
    assert bodies(await server.drain(QUEUE)) == ["first", "a"]


async def test_r12_a_put_that_arrives_late_finds_its_place_taken(world: World) -> None:
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "first")
    server.store.next("change", LOGS, ARRIVE_LATE, times=1 + limits.SETTLE_ATTEMPTS)
    assert isinstance(await put_one(server, "late"), OutcomeUnknown)
    assert await put_one(other, "b") == MessageId(0, 1)
    await server.store.land()
    assert bodies(await other.drain(QUEUE)) == ["first", "b"]
    assert await put_one(server, "late") == MessageId(0, 2)


async def test_r12_a_put_that_arrives_late_is_the_one_that_was_asked_for(world: World) -> None:
    server = world.server()
    await make(server)
    server.store.next("change", LOGS, ARRIVE_LATE, times=1 + limits.SETTLE_ATTEMPTS)
    assert isinstance(await put_one(server, "late"), OutcomeUnknown)
    await server.store.land()
    assert await put_one(server, "late") == MessageId(0, 0)
    assert bodies(await server.drain(QUEUE)) == ["late"]


async def test_an_unavailable_store_puts_nothing_and_says_so(world: World) -> None:
    server = world.server()
    await make(server)
    server.store.next("change", LOGS, UNAVAILABLE)
    assert isinstance(await put_one(server, "a"), Unavailable)
    assert await server.drain(QUEUE) == []


async def test_r12_a_bucket_is_opened_though_nobody_knows_whether_it_was(world: World) -> None:
    server = world.server()
    await make(server, bucket_size=1)
    await put(server, "a")
    server.store.next("change", LOGS, LOSE_ANSWER, when=lambda change: "opened" in change.set_flags)
    assert await put(server, "b") == [1]
    server.store.next("change", LOGS, ARRIVE_LATE, when=lambda change: "opened" in change.set_flags)
    assert await put(server, "c") == [2]
    await server.store.land()
    assert await put(world.server(), "d") == [3]
    assert bodies(await server.drain(QUEUE)) == ["a", "b", "c", "d"]


async def test_r14_a_server_that_slept_through_the_end_of_a_bucket_puts_nothing_into_it(world: World) -> None:
    """R14"""
    sleeper, server = world.server(), world.server()
    await make(server, bucket_size=1, history_ms=0, dedup_window_ms=SECOND)
    assert await put(sleeper, "a") == [0]

    async def years() -> None:
        for body in ("b", "c", "d"):
            await put(server, body)
        await server.drain(QUEUE)
        await server.work(QUEUE, 2 * MINUTE)
        assert (await world.marks(QUEUE)).dropped == 3

    sleeper.store.next("change", LOGS, years)
    outcome = await put_one(sleeper, "late")
    assert outcome == MessageId(0, 4)
    assert bodies(await server.drain(QUEUE)) == ["late"]


async def test_r12_sixty_four_puts_at_once_cost_a_few_changes(world: World) -> None:
    """Group commit: what waits goes in one write. A lone put is one conditional write."""
    counting = CountingStore(world.store)
    server = world.server(store=counting)
    await make(server)
    await put(server, "warm")
    before = counting.counts
    await put(server, "alone")
    assert (counting.counts - before).changes == 1
    before = counting.counts
    batching = Batching(server.engine, AsyncioRuntime())
    await asyncio.gather(
        *[batching.put(world.account, QUEUE, [message(f"m{number}", f"g{number % 7}")]) for number in range(64)]
    )
    assert (counting.counts - before).changes <= 6
    assert len(await server.drain(QUEUE)) == 66
