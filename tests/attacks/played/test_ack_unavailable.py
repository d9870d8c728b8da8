"""An ack says Unavailable, "did not happen", and happens; and a receipt that was called stale wins (A3).

 1. m1 and m2 are delivered. m2 uses up its deliveries and is moving to the dead-letter queue; its mover stopped
    there.
 2. A consumer acks both in one group: the conditional write's outcome is unknown (it is under way). Repeated, it is
    refused, because m2 is moving; m2's ack is answered "stale: moved to another queue".
 3. m1 goes again by itself: Unavailable. The consumer is told that the ack of m1 provably did not happen.
 4. The dead-letter queue is deleted, m2 is given back: settled None, delivery as before.
 5. The first write lands: every expectation holds again. m1 and m2 are acked.

Promise: "`Unavailable` is never answered for what may yet happen". settling.py rests on "repeating the very same
write decides it", which is true only of conditions that never hold again; `settled` comes back to None by a give-
back.
"""

from __future__ import annotations

from angelhair.engine.schema import BODIES, STATES
from angelhair.errors import OutcomeUnknown, StaleReceipt, Unavailable
from tests.faults import ARRIVE_LATE, NEVER_SENT, UNAVAILABLE
from tests.queues import HOUR, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


async def test_an_ack_that_provably_did_not_happen(world: World) -> None:
    server, mover, other = world.server(), world.server(), world.server()
    await other.create("dead", **SETTINGS)
    await other.create(
        "orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=5 * SECOND, **SETTINGS
    )
    await other.put("orders", b"m1", b"m2")
    first, second = sorted(await server.receive("orders", 2), key=lambda delivery: delivery.body)
    assert await server.extend("orders", first, HOUR) is None
    mover.store.next("write", BODIES, NEVER_SENT, times=1000)
    world.wait(6 * SECOND)
    for _ in range(4):
        assert await mover.receive("orders") == []
        await mover.step("orders")
        world.wait(SECOND)
    states, _ = await world.bucket("orders", 0)
    assert [row.values.get("settled") for row in states.rows] == [None, "moving"]
    server.store.next("change", STATES, ARRIVE_LATE, when=lambda change: len(change.rows) == 2)
    server.store.next("change", STATES, UNAVAILABLE, when=lambda change: len(change.rows) == 1)
    said = await server.ack("orders", first, second)
    server.store.heal()
    assert isinstance(said[1], StaleReceipt)
    await other.engine.delete_queue(world.account, "dead")
    for _ in range(60):
        await other.receive("orders")
        await other.step("orders")
        world.wait(SECOND)
        states, _ = await world.bucket("orders", 0)
        if states.rows[1].values.get("settled") is None:
            break
    states, _ = await world.bucket("orders", 0)
    assert [row.values.get("settled") for row in states.rows] == [None, None]
    await server.store.land()
    states, _ = await world.bucket("orders", 0)
    acked = [row.values.get("settled") == "acked" for row in states.rows]
    assert isinstance(said[0], OutcomeUnknown) or not acked[0], (said, acked)
    assert isinstance(said[0], Unavailable | OutcomeUnknown)
