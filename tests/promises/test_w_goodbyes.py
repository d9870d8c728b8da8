"""A1, W8: a clean stop forgets nothing. What has failed is set aside with its deliveries when its holder leaves."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import SHARDS
from tests.faults import NEVER_SENT
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, take, touch
from tests.queues import SECOND, Server, World

DEAD = "dead"
MOST = 3


async def poisoned(server: Server, visibility_ms: int = 30 * SECOND) -> None:
    await server.create(DEAD)
    await create(
        server, lanes=1, visibility_timeout_ms=visibility_ms, max_deliveries=MOST, dead_letter_queue=DEAD
    )
    await put(server, b"poison", in_ms=DELAY)
    server.world.wait(DELAY)


async def one_life(server: Server, name: str, gives_back: bool) -> list[int]:
    """A consumer that lives for one failure and says goodbye; how often the message was delivered by then."""
    await touch(server, name)
    seen = []
    for delivery in await receive(server, consumer=name):
        seen.append(delivery.deliveries)
        if gives_back:
            assert await server.extend(NAME, delivery, SECOND) is None
        else:
            server.world.wait(2 * SECOND)
    await server.engine.leave_consumer(server.world.account, NAME, name)
    return seen


@pytest.mark.parametrize("gives_back", [True, False])
async def test_a_message_that_fails_under_one_short_lived_consumer_after_the_other_is_dead_in_the_end(
    world: World, gives_back: bool
) -> None:
    """Naive: the count is in the memory of who holds the shard, and every goodbye begins it anew."""
    servers = world.server(), world.server()
    await poisoned(servers[0], visibility_ms=30 * SECOND if gives_back else SECOND)
    seen: list[int] = []
    for life in range(12):
        server = servers[life % 2]
        seen += await one_life(server, f"life-{life}", gives_back)
        await pass_time(servers[0], DELAY + SECOND, servers[1])
    assert seen == list(range(1, MOST + 1))
    assert bodies(await servers[0].receive(DEAD, 10)) == [b"poison"]


async def test_a_message_that_failed_keeps_its_count_when_its_server_stops(world: World) -> None:
    first, second = world.server(), world.server()
    await poisoned(first)
    (delivery,) = await receive(first)
    assert await first.extend(NAME, delivery, SECOND) is None
    await first.engine.release_leases()
    world.wait(DELAY + SECOND)
    (again,) = await receive(second)
    assert (again.body, again.deliveries) == (b"poison", 2)


async def test_w8_what_was_only_handed_out_is_others_at_once_after_a_goodbye_and_was_not_tried(world: World) -> None:
    """A worker has messages in hand that no handler has seen yet. They must not wait, nor die of its restarts."""
    first, second = world.server(), world.server()
    await poisoned(first)
    for life in range(2 * MOST):
        server = (first, second)[life % 2]
        (delivery,) = await receive(server, consumer=f"life-{life}")
        assert delivery.deliveries == 1
        await server.engine.leave_consumer(world.account, NAME, f"life-{life}")
    (delivery,) = await receive(first, consumer="last")
    assert await ack(first, delivery) == [None]


async def test_a_message_that_is_given_again_just_before_the_goodbye_keeps_what_it_had(world: World) -> None:
    server, other = world.server(), world.server()
    await poisoned(server, visibility_ms=SECOND)
    await receive(server, consumer="a")
    world.wait(SECOND)
    (again,) = await receive(server, consumer="a")
    assert again.deliveries == 2
    await server.engine.leave_consumer(world.account, NAME, "a")
    world.wait(DELAY + SECOND)
    (third,) = await receive(other, consumer="b")
    assert third.deliveries == 3


async def test_a3_w5_who_came_back_is_not_taken_for_who_said_goodbye(world: World) -> None:
    """A first life still takes a lock, and does not know whether it has it, when the second one has taken it."""
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"once", in_ms=DELAY)
    world.wait(DELAY)
    # The mark is behind the message already, so that nobody has to raise it.
    assert bodies(await receive(server, consumer="b")) == [b"once"]
    await server.engine.leave_consumer(world.account, NAME, "b")
    found = []

    async def come_back() -> None:
        await server.engine.leave_consumer(world.account, NAME, "a")
        found.extend(await receive(server, consumer="a"))

    takes = server.store.next("change", SHARDS, NEVER_SENT)
    again = server.store.next("change", SHARDS, come_back)
    assert await receive(server, consumer="a") == []
    assert (takes.happened, again.happened) == (1, 1)
    assert bodies(found) == [b"once"]
    for _ in range(2):
        assert await receive(server, consumer="a") == [], "it was given, and is hidden"
    assert (await touch(server, "a")).lanes == (0,)
    assert await ack(server, *found) == [None]
    await pass_time(server, DELAY)
    assert (await touch(server, "a")).lanes == (0,)


async def test_w8_what_a_life_took_after_its_goodbye_is_given_back(world: World) -> None:
    server = world.server()
    await create(server, lanes=2)
    await put(server, *(b"%d" % number for number in range(20)), in_ms=DELAY)
    world.wait(DELAY)

    async def come_back() -> None:
        await server.engine.leave_consumer(world.account, NAME, "a")
        await touch(server, "a")

    server.store.next("change", SHARDS, come_back)
    assert await receive(server, consumer="a") == []
    assert len(await take(server, consumer="a")) == 20
