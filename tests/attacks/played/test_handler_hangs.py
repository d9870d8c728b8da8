"""A handler that hangs for good, its worker alive and well beside it."""

from __future__ import annotations

from tests.promises.timelines import DELAY, NAME, ack, bodies, create, put, receive, touch
from tests.queues import SECOND, World

LOCK = 10 * SECOND


async def test_w8_a_message_that_is_extended_for_ever_holds_up_nothing(world: World) -> None:
    """Naive: what was set aside once is left alone when it comes into the window again, hidden, as it was not given
    there. A window later nothing is read beyond it any more."""
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"hangs", in_ms=DELAY)
    world.wait(DELAY)
    (hanging,) = await receive(server, consumer="a")
    wanted, got = set[bytes](), set[bytes]()
    for second in range(240):
        if second < 200:
            some = [b"%d %d" % (second, number) for number in range(20)]
            wanted.update(some)
            await put(server, *some, in_ms=DELAY)
        world.wait(SECOND)
        await touch(server, "a")
        await server.step(NAME)
        if second % 5 == 0:
            assert await server.extend(NAME, hanging, LOCK) is None
        while found := await receive(server, 256, consumer="a"):
            got |= set(bodies(found))
            await ack(server, *found)
    assert len(wanted - got) == 0
    assert b"hangs" not in got
    assert await ack(server, hanging) == [None]
    for _ in range(60):
        world.wait(SECOND)
        assert await receive(server, consumer="a") == []
