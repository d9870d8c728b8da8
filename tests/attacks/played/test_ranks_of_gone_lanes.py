"""A queue with priorities whose lanes are made more and fewer, over and over."""

from __future__ import annotations

import pytest

from angelhair import limits
from tests.queues import World


async def test_a14_a_queue_does_not_remember_the_ranks_of_all_lanes_that_it_ever_had(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lie in the queue's own row, which every server reads every few seconds."""
    server = world.server()
    await server.create("orders", priorities=2)
    monkeypatch.setattr(limits, "RANKS_REMEMBERED", 8)
    for _ in range(20):
        await server.engine.change_queue(world.account, "orders", {"lanes": 2})
        await server.engine.change_queue(world.account, "orders", {"lanes": 1})
        await server.step("orders")
        world.wait(3_000)
    queue = await world.queue("orders")
    assert len(queue.lanes) <= 6
    assert len(queue.ranks) <= 8 + len(queue.lanes)
    gone = [lane for lane in queue.ranks if lane not in queue.lanes]
    assert gone and min(gone) > queue.lanes_made // 2
