"""A move is given back by a server whose memory of the target is a few seconds old: the message comes twice (R7).

 1. A message is exhausted and moving to the dead-letter queue `dead`; who moved it could not write there.
 2. S2 sees it moving and watches it. S2 also serves a receive of `dead`, and remembers its incarnation 1.
 3. `dead` is deleted and made again: incarnation 2. S3 finds incarnation 1 gone and gives the message back; it is
    exhausted, so S3 moves it again: moving to incarnation 2. S3 is about to write there.
 4. S2 has watched "moving" for MOVE_PATIENCE_MS (the watch goes by -2, "it has none that changes", so a second move
    does not begin it anew) and resumes. Its catalog memory, younger than CATALOG_AGE_MS, says incarnation 1: `find`
    answers None, "the target is gone", and S2 gives the message back while S3's move is alive.
 5. S3 writes it in incarnation 2; its settle is refused, which counts as done. The message is in `dead` and visible
    in `orders`, from where it is dead-lettered once more.

Promise: R7.
"""

from __future__ import annotations

from angelhair.engine.schema import BODIES
from tests.faults import NEVER_SENT
from tests.queues import HOUR, SECOND, Server, World

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


async def watching(world: World, server: Server) -> bool:
    lane = server.engine.memory.lane(await world.queue("orders"), 0)
    return lane.view.watched.get(0, (None, 0))[0] == -2


async def test_r7_given_back_by_an_old_memory(world: World) -> None:
    second, third, operator = world.server(), world.server(), world.server()
    await operator.create("dead", **SETTINGS)
    await operator.create(
        "orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND, **SETTINGS
    )
    await operator.put("orders", b"m")
    assert len(await third.receive("orders")) == 1
    third.store.next("write", BODIES, NEVER_SENT, times=1000)
    await world.work("orders", 3 * SECOND, [third])
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values["settled"] == "moving"
    # Both see it moving, and watch.
    for _ in range(60):
        for server in (second, third):
            assert await server.receive("orders") == []
            await server.step("orders")
        if await watching(world, second) and await watching(world, third):
            break
        world.wait(SECOND // 4)
    assert await watching(world, second) and await watching(world, third)
    third.store.heal()
    world.wait(5 * SECOND)
    await second.receive("dead")  # remembers incarnation 1
    await operator.engine.delete_queue(world.account, "dead")
    await operator.create("dead", **SETTINGS)
    gave_back = []

    async def meanwhile() -> None:
        await second.step("orders")
        states, _ = await world.bucket("orders", 0)
        gave_back.append(states.rows[0].values.get("settled"))

    third.store.next("write", BODIES, meanwhile)
    for _ in range(20):
        await third.receive("orders")
        await third.step("orders")
        world.wait(SECOND // 5)
    got = []
    for _ in range(30):
        await third.step("orders")
        await second.step("orders")
        got += [delivery.body for delivery in await third.take("dead")]
        world.wait(SECOND)
    assert got == [b"m"], (got, gave_back)
