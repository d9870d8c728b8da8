"""Deleting a queue says Unavailable, "did not happen", after it happened.

 1. delete_queue: the catalog's row goes to `deleting`; the answer is lost (unknown).
 2. The same change again is refused, because it has landed: status is not `active` any more.
 3. To see why, `delete` loads the queue: that read fails, Unavailable, which is raised as it is.
 4. The caller is told that provably nothing happened; the queue takes no more puts, and the grave sees to the rest.

Promise: "`Unavailable` is never answered for what may yet happen" (ARCHITECTURE, category 2).
"""

from __future__ import annotations

from angelhair.engine.schema import QUEUES
from angelhair.errors import AngelhairError, QueueNotFound, Unavailable
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.queues import World


async def test_delete_queue(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await other.put("orders", b"m")

    async def then_fail() -> None:
        server.store.next("read", QUEUES, UNAVAILABLE)

    server.store.next("change", QUEUES, LOSE_ANSWER)
    server.store.next("change", QUEUES, then_fail)
    said: AngelhairError | None = None
    try:
        await server.engine.delete_queue(world.account, "orders")
    except AngelhairError as error:
        said = error
    gone = False
    try:
        await world.server().receive("orders")
    except QueueNotFound:
        gone = True
    assert not (isinstance(said, Unavailable) and gone), (said, gone)


async def test_change_queue(world: World) -> None:
    """Its first try landed and the answer was lost; somebody changed the queue once more; the look at it fails."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=1_000)

    async def another() -> None:
        await other.engine.change_queue(world.account, "orders", {"delay_ms": 5})
        server.store.next("read", QUEUES, UNAVAILABLE)

    server.store.next("change", QUEUES, LOSE_ANSWER)
    server.store.next("change", QUEUES, another)
    said: AngelhairError | None = None
    try:
        await server.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": 7_000})
    except AngelhairError as error:
        said = error
    changed = (await world.queue("orders")).settings.visibility_timeout_ms == 7_000
    assert not (isinstance(said, Unavailable) and changed), (said, changed)
