"""R6, R10: a run is put into the queue that there is, whatever a server remembers of one that was deleted."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.errors import AngelhairError
from angelhair.model import NewMessage
from tests.queues import DAY, SECOND, World
from tests.runs import all_of

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": 0}
BATCH = [NewMessage(b"m0"), NewMessage(b"m1")]
RUN = Run("task", 0, 2, "digest", DAY)


async def put(server):
    begun = await server.engine.begin_run(server.world.account, "orders", RUN)
    if begun is None:
        return None
    return await server.engine.finish_run(begun, BATCH)


@pytest.mark.parametrize("committed", [False, True])
async def test_a_run_put_after_its_queue_was_made_again(world: World, committed: bool) -> None:
    """A server that remembers the old queue asks the old queue's ledger, and touches nothing that tells it so (R6)."""
    first, second = world.server(), world.server()
    await first.create("orders", **SETTINGS)
    if committed:
        await put(first)
        await first.drain("orders")
    else:
        assert await first.engine.begin_run(world.account, "orders", RUN) is not None
    await second.engine.delete_queue(world.account, "orders")
    await second.create("orders", **SETTINGS)
    await put(first)
    assert await all_of(world, second) == {b"m0": 1, b"m1": 1}


async def test_a_run_put_after_its_queue_was_deleted(world: World) -> None:
    """A put is refused there. A run is said to be in a queue that is gone."""
    first, second = world.server(), world.server()
    await first.create("orders", **SETTINGS)
    await put(first)
    await second.engine.delete_queue(world.account, "orders")
    with pytest.raises(AngelhairError):
        await put(first)
