"""A redrive says Unavailable, "did not happen", and moves a message all the same.

 1. Two messages in two buckets. The first is marked moving; its row in the target cannot be written now (unknown), so
    it did not arrive: `moved` is still 0.
 2. For the second bucket the reservation fails: Unavailable, raised as it is because `begun(moved > 0)` is off.
 3. The caller is told that provably nothing happened. The first message is not in its queue any more, and arrives in
    the target when somebody resumes the move.

Promise: "`Unavailable` is never answered for what may yet happen".
"""

from __future__ import annotations

from angelhair.engine.schema import BODIES, SEQUENCES
from angelhair.errors import StoreError, Unavailable
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.queues import HOUR, SECOND, World

SETTINGS = {"bucket_size": 1, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


async def test_redrive_that_provably_did_not_happen(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", **SETTINGS)
    await server.create("to", **SETTINGS)
    await server.put("orders", b"a", b"b")
    said: StoreError | None = None
    first = server.store.next("write", BODIES, NEVER_SENT, times=3)
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=1000, when=lambda change: first.happened > 0)
    try:
        await server.engine.redrive(world.account, "orders", "to", 10)
    except StoreError as error:
        said = error
    server.store.heal()
    got: list[bytes] = []
    for _ in range(40):
        await other.step("orders")
        await other.step("to")
        await other.receive("orders", 1, 0)
        got += [delivery.body for delivery in await other.take("to", 10)]
        world.wait(SECOND)
    assert not (isinstance(said, Unavailable) and got), (said, got)
