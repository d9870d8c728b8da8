"""A deleted queue's messages lie in the store for ever: its grave is filled by who found an older one empty (R6, A14).

 1. A server digs a grave for `orders` and dies before it deletes anything.
 2. Ten minutes later a bury step finds the grave, and the queue alive; it is about to take the grave away.
 3. Another server deletes `orders`, all of it: it digs the grave anew (the same row, a new time), marks, frees the
    name.
 4. The bury step takes the grave away: without any condition.
 5. Nobody knows any more that there is something to drop.
"""

from __future__ import annotations

from angelhair.engine.schema import BODIES, GRAVES, QUEUES
from angelhair.errors import StoreError
from tests.faults import NEVER_SENT
from tests.queues import MINUTE, World


async def test_what_a_deleted_queue_held_goes(world: World) -> None:
    dying, digger, deleter = world.server(), world.server(), world.server()
    queue = await deleter.create("orders")
    await deleter.put("orders", b"m")
    dying.store.next("change", QUEUES, NEVER_SENT, times=1000)
    try:
        await dying.engine.delete_queue(world.account, "orders")
    except StoreError:
        pass
    world.wait(11 * MINUTE)

    async def meanwhile() -> None:
        await deleter.engine.delete_queue(world.account, "orders")

    rule = digger.store.next(
        "change", GRAVES, meanwhile,
        when=lambda change: change.rows[0].key == queue.incarnation and change.rows[0].values is None,
    )
    await digger.bury()
    assert rule.happened
    world.wait(11 * MINUTE)
    await digger.bury()
    left = [place for place in await world.dump() if place[0] == BODIES.name]
    assert left == [], left
