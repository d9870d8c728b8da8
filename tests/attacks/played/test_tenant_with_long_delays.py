"""A tenant whose puts are answered with the id of a message that waits in the delay line."""

from __future__ import annotations

from angelhair import limits
from tests.queues import HOUR, World


async def test_r11_what_waits_in_the_line_makes_nobody_noisy(world: World) -> None:
    """Such an id is beyond all that a lane ever hands out: each time that the put was repeated, one message more was
    taken to wait in the lane, for good."""
    server = world.server()
    await server.create("orders", fair=True)
    await server.put("orders", b"later", delay_ms=HOUR, key="k", group="a")
    for _ in range(2 * limits.NOISY_MESSAGES):
        await server.put("orders", b"later", key="k", group="a")
    await server.put("orders", b"now", group="a")
    assert [delivery.body for delivery in await server.drain("orders")] == [b"now"]
    await server.put("orders", b"again", group="a")
    queue = await world.queue("orders")
    assert not any(rank.noisy for rank in queue.ranks.values())
