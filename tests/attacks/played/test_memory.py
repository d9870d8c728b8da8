"""What a server remembers, and for how long."""

from __future__ import annotations

from angelhair.model import MessageId
from tests.queues import HOUR, SECOND, World, numbers


async def test_slow_consumer_and_erased_ids(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=100, repair_timeout_ms=HOUR)
    await server.put("orders", *[b"%d" % n for n in range(100)])
    await server.put("orders", *[b"%d" % n for n in range(100, 300)])
    for number in range(0, 100, 2):
        assert await server.engine.erase(world.account, "orders", MessageId(0, number))
    got = []
    for _ in range(270):
        got += numbers(await server.take("orders", 1))
        world.wait(3 * SECOND)
    assert len(got) == 250, (
        len(got),
        (await world.marks("orders")).reader,
        [n for n in range(1, 100, 2) if n not in got],
    )


async def test_the_due_heap_holds_finished_buckets(world: World) -> None:
    server = world.server()
    await server.create(
        "orders", bucket_size=1, repair_timeout_ms=SECOND, history_ms=0, visibility_timeout_ms=12 * HOUR
    )
    for _ in range(20):
        await server.put("orders", count=50)
        await server.drain("orders", 50)
        await world.work("orders", 5 * SECOND, [server])
    view = server.engine.memory.lane(await world.queue("orders"), 0).view
    assert (await world.marks("orders")).repair > 900
    assert len(view.due) < 200 and len(view.scheduled) < 200, (len(view.due), len(view.scheduled))
