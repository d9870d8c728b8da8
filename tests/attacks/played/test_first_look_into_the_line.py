"""When a server looks into a delay line for the first time."""

from __future__ import annotations

from tests.queues import DAY, HOUR, MINUTE, World


async def test_a10_a_server_that_begins_with_a_long_delay_looks_for_shorter_ones_of_others(world: World) -> None:
    """Its own message is due in a month, and that was when it looked for the first time: what its predecessor had put
    waited so long with it."""
    before = world.server()
    await before.create("orders")
    await before.put("orders", b"in an hour", delay_ms=HOUR)
    server = world.server()
    await server.put("orders", b"in a month", delay_ms=30 * DAY)
    world.wait(HOUR)
    await server.work("orders", 2 * MINUTE)
    assert [delivery.body for delivery in await server.drain("orders")] == [b"in an hour"]
    world.wait(30 * DAY)
    await server.work("orders", 2 * MINUTE)
    assert [delivery.body for delivery in await server.drain("orders")] == [b"in a month"]
