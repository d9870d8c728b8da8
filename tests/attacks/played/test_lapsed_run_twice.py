"""A run's message is given out twice: its old id is voided after the run's window, when nobody can tell any more (R10).

 1. A run's first try writes X and dies before the ledger's last word.
 2. A receive has read the lane's marks and is about to claim X; it sleeps. The queue is purged.
 3. A second try: X is purged and not given, so the ledger goes on: Y, before X. It sleeps before it voids X.
 4. The receive claims X and its consumer acks it. The bucket is finished and, `lapses_at` and the clock errors being
    over, dropped.
 5. The second try wakes up: `void` finds nothing at X (a dropped bucket), so it writes at Y and commits.
 6. Y is given out: twice, and the run says that all is well.

`_moved_on` and `_resumed` refuse to go on after `lapses_at` for exactly this reason ("their buckets may be gone, and
with them what was given out"); between `_set` and the void nobody looks at the time again.
Promise: R10, "many messages that are put once".
"""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import LEDGER, STATES
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.queues import HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 1, "repair_timeout_ms": 5 * SECOND, "history_ms": 0}


@pytest.mark.parametrize("slept_ms", [10 * MINUTE, 2 * HOUR])
async def test_r10_a_run_that_sleeps_over_its_window(world: World, slept_ms: int) -> None:
    """10 minutes is the control."""
    failing, receiver, second, worker = world.server(), world.server(), world.server(), world.server()
    await worker.create("orders", retention_ms=None, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", HOUR), [NewMessage(b"m")]
    failing.store.next(
        "change", LEDGER, NEVER_SENT, times=1000, when=lambda c: c.rows[0].values["status"] == "committed"
    )
    begun = await failing.engine.begin_run(world.account, "orders", run)
    with pytest.raises(StoreError):
        await failing.engine.finish_run(begun, batch)
    got: list[bytes] = []

    async def hold() -> None:
        await worker.engine.purge(world.account, "orders")
        at_claim.set()
        await claim.wait()

    at_claim, claim = asyncio.Event(), asyncio.Event()
    receiver.store.next("change", STATES, hold, when=lambda change: bool(change.rows))
    receiving = asyncio.create_task(receiver.receive("orders"))
    await asyncio.wait_for(at_claim.wait(), 10)

    async def meanwhile() -> None:
        claim.set()
        deliveries = await receiving
        got.extend(delivery.body for delivery in deliveries)
        assert await receiver.ack("orders", *deliveries) == [None] * len(deliveries)
        await worker.put("orders", b"next")
        await worker.drain("orders")
        await world.work("orders", MINUTE, [worker])
        world.wait(slept_ms)
        await world.work("orders", MINUTE, [worker])
        got.append(b"|")

    again = await second.engine.begin_run(world.account, "orders", run)
    second.store.next("change", LEDGER, meanwhile, when=lambda c: c.rows[0].values["before"] is not None, after=True)
    try:
        await second.engine.finish_run(again, batch)
    except AngelhairError:
        pass
    got += [delivery.body for delivery in await worker.drain("orders")]
    assert got == [b"m", b"|"], got
