"""Acks of messages that were set aside since, to a shard that their server does not hold."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import DUES, SHARDS
from angelhair.errors import OutcomeUnknown, StaleReceipt, Unavailable
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, take
from tests.queues import MINUTE, SECOND, Server, World

LOCK = 10 * SECOND


async def everything(world: World, server: Server, seconds: int = 120) -> list[bytes]:
    got: list[bytes] = []
    for _ in range(seconds):
        await server.step(NAME)
        got += await take(server)
        world.wait(SECOND)
    return got


async def test_who_is_slower_than_a_lock_and_faster_than_the_time_out_can_ack(world: World) -> None:
    """Naive: after a lock's time without a word the shard is given back, and receipts are void. Whoever has no name
    cannot touch; with messages that take longer than a lock it would never be done with one."""
    server = world.server()
    await create(server, lanes=1, visibility_timeout_ms=30 * SECOND)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    await pass_time(server, 15 * SECOND)
    assert await ack(server, delivery) == [None]
    assert await everything(world, server) == []


async def test_what_was_set_aside_to_a_shard_of_another_server_can_be_acked(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=2)
    await put(server, b"a", in_ms=DELAY)
    await put(server, b"b", in_ms=DELAY + SECOND)
    for _ in range(20):
        world.wait(SECOND)
        found = [*await receive(server, consumer="a"), *await receive(other, consumer="b")]
        for delivery in found:
            for each in (server, other):
                # Whoever has it, puts it off to a time in the other's shard.
                await each.extend(NAME, delivery, 20 * SECOND + (int(str(delivery.id)[0]) == 0) * SECOND)
            await server.step(NAME)
            await other.step(NAME)
            outcomes = [(await ack(each, delivery))[0] for each in (server, other)]
            assert None in outcomes, outcomes
    assert await everything(world, server) == []


async def test_an_ack_that_comes_after_it_was_given_again_is_refused(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1, visibility_timeout_ms=5 * SECOND)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    await pass_time(server, LOCK + SECOND)
    world.wait(MINUTE)
    (again,) = await receive(other)
    (outcome,) = await ack(server, delivery)
    assert isinstance(outcome, StaleReceipt)
    world.wait(5 * SECOND)
    assert bodies(await receive(other)) == [again.body]


@pytest.mark.parametrize("happening", [LOSE_ANSWER, UNAVAILABLE])
async def test_an_ack_whose_write_fails_is_no_success(world: World, happening: str) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    await pass_time(server, 15 * SECOND)
    server.store.next("write", DUES, happening, times=100)
    (outcome,) = await ack(server, delivery)
    assert isinstance(outcome, Unavailable if happening == UNAVAILABLE else OutcomeUnknown)
    server.store.heal()
    assert await ack(server, delivery) == [None]


async def test_who_cannot_be_told_of_one_is_told_of_the_others(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"slow", in_ms=DELAY)
    world.wait(DELAY)
    (slow,) = await receive(server)
    await pass_time(server, 15 * SECOND)
    await put(server, b"quick")
    world.wait(DELAY)
    (quick,) = await receive(server)
    assert quick.body == b"quick"
    await server.engine.leave_consumer(world.account, NAME, "nobody")
    server.store.next("read", SHARDS, UNAVAILABLE, times=100)
    outcomes = await ack(server, slow, quick)
    server.store.heal()
    assert outcomes[1] is None
    assert await everything(world, server, 20) in ([], [b"slow"])
