"""A confirmed put is lost: a run's first try, begun long ago, commits the key at an id that its second try voided (A1).

 1. A task begins its run (ledger: X) and computes for 31 minutes before it finishes it.
 2. A second try finds X unwritten and half of the retention over: ledger Y before X, key pending(Y, before X), X
    void, Y written, key committed(Y), ledger committed. Y is delivered. The key's row lapses with its window.
 3. The first goes on: it is not `resuming`, so nothing is looked at. The key's row is absent: pending(X), the body at
    X, committed(X). X is void. It is told that the run is in the queue, which is so (Y).
 4. A producer puts another message with the key, a window and more after Y's put: told X. Nobody is ever given it.
"""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 5 * MINUTE}


@pytest.mark.parametrize("sleeper", [False, True])
async def test_a1_put_is_told_a_void_id(world: World, sleeper: bool) -> None:
    first, second, producer = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=HOUR, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"run", key="k")]
    begun = await first.engine.begin_run(world.account, "orders", run)
    world.wait(31 * MINUTE)
    again = await second.engine.begin_run(world.account, "orders", run)
    assert await second.engine.finish_run(again, batch) == set()
    assert [d.body for d in await second.drain("orders")] == [b"run"]
    world.wait(6 * MINUTE)
    if sleeper:
        await first.engine.finish_run(begun, batch)
        world.wait(SECOND)
    (said,) = await producer.put_outcomes("orders", [NewMessage(b"new", key="k")])
    got = await all_of(world, world.server())
    assert got == [b"new"], (said, got)
