"""A delayed put that sleeps between its write and its confirmation until the message is due."""

from __future__ import annotations

from angelhair.engine.schema import DUES, QUEUES
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import NewMessage
from tests.faults import UNAVAILABLE
from tests.queues import HOUR, MINUTE, World


async def test_a10_what_was_delivered_from_a_line_that_is_gone_may_have_happened(world: World) -> None:
    """Another server hands it over and somebody gets it; then the queue is purged, and the put finds neither its line
    nor a way to another one. That it did not happen would be a lie."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"makes the line", delay_ms=24 * HOUR)
    got: list[bytes] = []

    async def sleep() -> None:
        world.wait(HOUR)
        await other.work("orders", MINUTE)
        got.extend(delivery.body for delivery in await other.drain("orders"))
        await other.engine.purge(world.account, "orders")
        server.store.next("read", QUEUES, UNAVAILABLE, times=100)

    server.store.next("write", DUES, sleep, after=True)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"later", delay_ms=HOUR)])
    assert got == [b"later"]
    assert isinstance(outcome, OutcomeUnknown) and not isinstance(outcome, Unavailable)
