"""Attacks on goodbyes of timelines: two tasks of a server that part with a shard at the same time."""

from __future__ import annotations

from angelhair.engine.schema import DUES
from tests.promises.timelines import DELAY, NAME, ack, create, pass_time, put, receive, touch
from tests.queues import SECOND, World


async def test_a_message_that_failed_comes_once_after_a_goodbye_that_met_the_background_work(world: World) -> None:
    """A consumer has failed and says goodbye: its message is being written again, at a later time. Just then the
    background work comes by, finds a shard whose holder has left, and parts with it as well: it sets the message aside
    a second time. The later of the two is known to be one too many, to this server alone. Another one, which has the
    shard then, gives both: one failure, two more messages, each with an id of its own."""
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, b"failed", in_ms=DELAY)
    world.wait(DELAY)
    await touch(server, "a")
    (delivery,) = await receive(server, consumer="a")
    assert await server.extend(NAME, delivery, SECOND) is None

    async def background() -> None:
        await server.engine.step(world.account, NAME)

    meanwhile = server.store.next("write", DUES, background)
    await server.engine.leave_consumer(world.account, NAME, "a")
    assert meanwhile.happened == 1
    found = []
    for _ in range(10):
        await pass_time(other, DELAY + SECOND)
        some = await receive(other, consumer="b")
        found += some
        if some:
            assert await ack(other, *some) == [None] * len(some)
    assert [each.body for each in found] == [b"failed"], "acked as soon as it came"
