"""A delayed put by a server that remembers a delay line which a purge has deleted since."""

from __future__ import annotations

from tests.queues import HOUR, World


async def test_r6_a_put_after_a_purge_goes_to_a_line_that_is_there(world: World) -> None:
    """What was written to the old line nobody hands over: to answer that it may have happened would be to have its
    producer put it twice, or not at all."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"gone", delay_ms=HOUR)
    await other.engine.purge(world.account, "orders")
    await server.put("orders", b"later", delay_ms=HOUR)
    world.wait(HOUR)
    assert [delivery.body for delivery in await other.take("orders", 10)] == [b"later"]
