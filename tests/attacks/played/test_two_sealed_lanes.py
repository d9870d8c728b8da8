"""A move is given back although its id in the target was not voided: two lanes of the target are sealed (R7).

 1. A message is moved to `to` (3 lanes), at A in lane 2; the mover dies before it settles the source.
 2. A receive of `to` has read its marks and is about to claim A; it sleeps. `to` is purged, and goes down to 2 lanes.
 3. Another server resumes: A is purged and not given; lane 2 is sealed; `_reserved` asks the catalog for an open lane
    and is given lane 1. Before it reserves there, `to` goes down to 1 lane: LaneSealed once more, `_reserved` answers
    None.
 4. "The target is gone": the message is given back in the source, though lane 0 is open, and A is not void.
 5. The receive claims A. The message is delivered in `to`, and again from the source.

Promise: R7.
"""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.schema import SEQUENCES, STATES
from angelhair.errors import StoreError
from tests.faults import NEVER_SENT
from tests.queues import HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


@pytest.mark.parametrize("again", [False, True])
async def test_r7_given_back_for_a_second_sealed_lane(world: World, again: bool) -> None:
    """False is the control: one lane is sealed."""
    dying, other, receiver, operator = world.server(), world.server(), world.server(), world.server()
    queue = await operator.create("to", lanes=3, **SETTINGS)
    await operator.create("orders", retention_ms=None, **SETTINGS)
    dying.store.next(
        "change", STATES, NEVER_SENT, times=1000,
        when=lambda change: any((row.values or {}).get("settled") == "moved" for row in change.rows),
    )
    bodies = []
    for body in (b"a", b"b"):
        await operator.put("orders", body)
        try:
            await dying.engine.redrive(world.account, "orders", "to", 1)
        except StoreError:
            pass
    lane_2 = f"{queue.incarnation}.2"
    states, _ = await world.bucket("orders", 0)
    assert any("/2/" in str(row.values.get("moving_to")) for row in states.rows)
    at_claim, claim = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        at_claim.set()
        await claim.wait()

    receiver.store.next(
        "change", STATES, hold, when=lambda change: bool(change.rows) and change.partition.key.startswith(lane_2)
    )
    receiving = asyncio.create_task(receiver.receive("to", 10))
    await asyncio.wait_for(at_claim.wait(), 10)
    await operator.engine.purge(world.account, "to")
    await operator.engine.change_queue(world.account, "to", {"lanes": 2})

    async def fewer() -> None:
        await operator.engine.change_queue(world.account, "to", {"lanes": 1})

    if again:
        other.store.next(
            "change", SEQUENCES, fewer, when=lambda change: change.partition.key == f"{queue.incarnation}.1", times=1
        )
    world.wait(MINUTE)
    for _ in range(20):
        bodies += [delivery.body for delivery in await other.take("orders", 10)]
        await other.step("orders")
        world.wait(SECOND)
        states, _ = await world.bucket("orders", 0)
        if not receiving.done() and any(row.values.get("settled") is None for row in states.rows):
            break
    claim.set()
    bodies += [delivery.body for delivery in await receiving]
    for _ in range(30):
        await other.step("orders")
        bodies += [delivery.body for delivery in await other.take("orders", 10)]
        bodies += [delivery.body for delivery in await other.take("to", 10)]
        world.wait(SECOND)
    assert sorted(bodies) == [b"a", b"b"], bodies
