"""A late copy of a delay line's creation, which lands when a purge has deleted the line."""

from __future__ import annotations

from angelhair.engine.delays import line_of
from angelhair.engine.schema import QUEUES
from tests.faults import ARRIVE_LATE
from tests.queues import HOUR, World


async def test_r6_a_line_that_is_a_name_and_nothing_else_is_made_again(world: World) -> None:
    """A queue in this state is healed by whoever makes it again. A line nobody makes as long as there is one by its
    name: every long delay was refused, for ever."""
    server, other = world.server(), world.server()
    queue = await server.create("orders")
    hidden, _ = line_of(world.account, queue.incarnation)
    server.store.next("change", QUEUES, ARRIVE_LATE, when=lambda change: change.partition.key == hidden)
    await server.put("orders", b"gone", delay_ms=HOUR)
    await other.engine.purge(world.account, "orders")
    await other.bury()
    await server.store.land()
    for each in (server, other):
        world.wait(HOUR)
        await each.put("orders", b"later", delay_ms=HOUR)
        world.wait(HOUR)
        await each.work("orders", 60_000)
        assert [delivery.body for delivery in await each.drain("orders")] == [b"later"]
