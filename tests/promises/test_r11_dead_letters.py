"""R11: what goes to the dead letters and comes back is as urgent, and as noisy, as it was."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.ranks import Rank
from tests.promises.test_r11_ranks import AHEAD, flood, priorities, take_one_by_one
from tests.queues import SECOND, World


async def test_r11_dead_letters_keep_their_priority_and_bring_it_back(world: World) -> None:
    server = world.server()
    await server.create("dead", priorities=3)
    await server.create("plain dead".replace(" ", "-"))
    for name, dead in (("orders", "dead"), ("chores", "plain-dead")):
        await server.create(
            name, priorities=3, max_deliveries=1, dead_letter_queue=dead, visibility_timeout_ms=SECOND
        )
        await server.put(name, b"urgent", priority=2)
        await server.receive(name)
        world.wait(2 * SECOND)
        assert await server.receive(name) == []
        await server.work(name, SECOND)
        assert [seen.body for seen in await server.engine.peek(world.account, dead, 10)] == [b"urgent"]
        if dead == "dead":
            assert [seen.priority for seen in await server.engine.peek(world.account, dead, 10)] == [2]
        assert await server.engine.redrive(world.account, dead, None, 10) == 1
        assert [(found.body, found.priority) for found in await server.receive(name)] == [(b"urgent", 2)]


async def test_r11_a_flood_that_comes_back_from_the_dead_letters_is_noisy_there(world: World) -> None:
    server = world.server()
    await server.create("dead")
    await server.create("orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND)
    await flood(server, "orders", 40)
    assert len(await server.receive("orders", 40)) == 40
    world.wait(2 * SECOND)
    await server.receive("orders", 40)
    await server.work("orders", SECOND)
    assert await server.engine.redrive(world.account, "dead", None, 100) == 40
    await server.put("orders", b"quiet", group="tenant")
    taken = await take_one_by_one(server, "orders", AHEAD + 1)
    assert b"quiet" in [delivery.body for delivery in taken]


async def test_r11_a_server_that_never_heard_of_a_lane_brings_its_messages_back_as_urgent_as_they_were(
    world: World,
) -> None:
    # Found by seed 191 of fair queues.
    first, second = world.server(), world.server()
    await first.create("dead")
    settings = {"max_deliveries": 1, "dead_letter_queue": "dead", "visibility_timeout_ms": SECOND}
    await first.create("orders", priorities=3, **settings)
    assert await second.receive("orders") == []
    for _ in range(limits.NOISY_MESSAGES + 5):
        await first.put("orders", b"urgent", priority=2, group="flood")
    assert len(await first.receive("orders", 100)) == limits.NOISY_MESSAGES + 5
    assert Rank(2, noisy=True) in (await world.queue("orders")).ranks.values()
    world.wait(2 * SECOND)
    await first.receive("orders", 100)
    await first.work("orders", SECOND)
    assert await second.engine.redrive(world.account, "dead", None, 100) == limits.NOISY_MESSAGES + 5
    assert {*priorities(await first.receive("orders", 100))} == {2}


async def test_r11_what_came_from_a_lane_that_is_gone_comes_back_as_urgent_as_it_was(world: World) -> None:
    # Found by seed 2231 of fair queues.
    server = world.server()
    await server.create("dead")
    settings = {"max_deliveries": 1, "dead_letter_queue": "dead", "visibility_timeout_ms": SECOND, "history_ms": 0}
    await server.create("orders", priorities=2, lanes=2, **settings)
    for _ in range(2):
        await server.put("orders", b"urgent", priority=1)
    assert len(await server.receive("orders", 10)) == 2
    world.wait(2 * SECOND)
    await server.receive("orders", 10)
    await server.work("orders", SECOND)
    lanes = set((await world.queue("orders")).lanes)
    await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    assert await server.receive("orders") == []
    await server.work("orders", 900 * SECOND)
    gone = lanes - set((await world.queue("orders")).lanes)
    assert len(gone) == 2
    origins = [seen.origin for seen in await server.engine.peek(world.account, "dead", 10)]
    assert {int(str(origin).split("/")[2].split("-")[0]) for origin in origins} & gone
    assert await server.engine.redrive(world.account, "dead", None, 10) == 2
    assert priorities(await server.receive("orders", 10)) == [1, 1]
