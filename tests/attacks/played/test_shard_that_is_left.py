"""A shard that is to go to another consumer, while a handler of the first one hangs."""

from __future__ import annotations

from tests.promises.timelines import DELAY, NAME, ack, bodies, create, put, receive, touch
from tests.queues import SECOND, World

LOCK = 10 * SECOND


async def test_w8_a_handler_that_hangs_does_not_keep_its_shard_from_everybody(world: World) -> None:
    """Naive: whoever has a shard too many gives nothing more from it, and waits for what is under way. A worker
    extends that for as long as its handler runs: nobody works on the shard meanwhile."""
    server = world.server()
    await create(server, lanes=2)
    for second in range(2):
        await put(server, b"hangs", in_ms=DELAY + second * SECOND)
    world.wait(DELAY + 2 * SECOND)
    hanging = await receive(server, consumer="a")
    assert len(hanging) == 2
    wanted, got = set(), set[bytes]()
    for second in range(90):
        await touch(server, "a")
        await touch(server, "b")
        await server.step(NAME)
        if second % 5 == 0:
            for delivery in hanging:
                await server.extend(NAME, delivery, LOCK)
        if second < 60:
            body = b"%d" % second
            wanted.add(body)
            await put(server, body, in_ms=DELAY)
        world.wait(SECOND)
        for consumer in ("a", "b"):
            found = await receive(server, consumer=consumer)
            got |= set(bodies(found))
            if found:
                await ack(server, *found)
    assert wanted - got == set()
    # What hangs is still theirs to settle.
    assert await ack(server, *hanging) == [None, None]


async def test_w8_nor_does_a_long_time_out(world: World) -> None:
    first, second = world.server(), world.server()
    await create(first, lanes=2, visibility_timeout_ms=3_600 * SECOND)
    for number in range(2):
        await put(first, b"kept", in_ms=DELAY + number * SECOND)
    world.wait(DELAY + 2 * SECOND)
    assert len(await receive(first, consumer="a")) == 2
    for _ in range(4 * LOCK // SECOND):
        await touch(first, "a")
        await touch(second, "b")
        await first.step(NAME)
        await second.step(NAME)
        world.wait(SECOND)
    assert len((await touch(second, "b")).lanes) == 1
