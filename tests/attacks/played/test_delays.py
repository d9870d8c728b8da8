"""A delay that is longer than the retention."""

from __future__ import annotations

from angelhair.model import MessageId, NewMessage
from tests.queues import DAY, SECOND, World


async def test_a10_a_delay_longer_than_the_retention(world: World) -> None:
    server = world.server()
    await server.create("orders")  # four days by default
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"m", delay_ms=5 * DAY)])
    assert isinstance(outcome, MessageId)
    world.wait(5 * DAY + SECOND)
    assert [d.body for d in await server.receive("orders")] == [b"m"]
