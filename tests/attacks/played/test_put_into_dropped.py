"""A put that slept leaves its message in a bucket that was dropped: it lies there for ever (R14, "finished buckets
really go").

 1. A put has its id and sleeps before it writes. Its bucket is declared void there, finished and dropped (history 0).
 2. It wakes up, writes its body below the floor, sees the floor, and goes again under a new id. All as it should be;
    but what it wrote below the floor stays: `retire` has passed there, and `bury` begins at `dropped`. Not even
    deleting the queue takes it away. What void and erase write there they sweep (`dropped.py`), puts, runs and moves
    do not.
"""

from __future__ import annotations

from angelhair.engine.schema import BODIES
from tests.queues import MINUTE, SECOND, World

SETTINGS = {"bucket_size": 1, "repair_timeout_ms": 5 * SECOND, "history_ms": 0}


async def test_nothing_is_left_of_a_put_that_slept(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)

    async def meanwhile() -> None:
        await other.put("orders", b"next")
        await other.drain("orders")
        for _ in range(30):
            await other.drain("orders")
            await other.step("orders")
            world.wait(SECOND)
        assert (await world.marks("orders")).dropped > 0

    sleeper.store.next("write", BODIES, meanwhile)
    # Not the one-step put of SQLite: the store between has no seventh verb.
    await sleeper.put("orders", b"secret")
    assert [delivery.body for delivery in await other.drain("orders")] == [b"secret"]
    await other.engine.delete_queue(world.account, "orders")
    world.wait(11 * MINUTE)
    await other.bury()
    left = [place for place in await world.dump() if place[0] == BODIES.name]
    assert left == [], left
