"""A message of a timeline that is acked at the very moment at which it is moved to the dead letters."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import QUEUES
from tests.promises.timelines import DELAY, ack, create, pass_time, put, receive
from tests.queues import SECOND, World


@pytest.mark.parametrize("dead", ["there", "gone"])
async def test_what_is_acked_while_its_dead_letter_queue_is_looked_up_is_not_moved(world: World, dead: str) -> None:
    """An acked message says nothing any more: an empty one would go to the dead letters, or be written again."""
    server = world.server()
    await server.create("dead")
    await create(server, lanes=1, max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server)
    world.wait(6 * SECOND)
    if dead == "gone":
        await server.engine.delete_queue(world.account, "dead")
    assert await receive(server) == []

    async def acked() -> None:
        assert await ack(server, delivery) == [None]

    looked_up = server.store.next("read", QUEUES, acked, when=lambda span: span.first == "dead")
    await pass_time(server, 3 * SECOND)
    assert looked_up.happened == 1
    if dead == "there":
        assert await server.drain("dead") == []
    # Nor does another server find anything of it.
    await server.engine.release_leases()
    other = world.server()
    for _ in range(30):
        world.wait(SECOND)
        assert await receive(other) == []
