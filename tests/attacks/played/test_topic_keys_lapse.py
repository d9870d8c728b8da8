"""A fifo topic's publication waits for a queue for longer than queues remember keys: the others have it once."""

from __future__ import annotations

from angelhair.engine.schema import LOGS
from tests.faults import UNAVAILABLE
from tests.promises.topics import Topics
from tests.queues import MINUTE, World


async def test_a_queue_gets_it_once_however_long_another_is_waited_for(world: World) -> None:
    topics = Topics(world)
    await topics.make("good", "bad", fifo=True)
    bad = (await world.queue("bad")).incarnation
    topics.server.store.next(
        "change", LOGS, UNAVAILABLE, times=1_000, when=lambda change: bad in str(change.partition.key)
    )
    await topics.publish("one", group="g", key="k")
    got: list[str] = []
    for _ in range(20):
        await topics.spread()
        got += await topics.bodies("good")
        world.wait(MINUTE)
    assert topics.told.waiting
    topics.server.store.heal()
    await topics.spread()
    assert await topics.bodies("bad") == ["one"]
    assert got == ["one"]
