"""One key, one id within its window: the row that goes on from an id lapses before that id's bucket can be dropped.

 1. t0: P1 puts key k: pending(X), body at X, dies before its commit. X's bucket is kept until t0 + window (+ 10 s).
 2. t0 + 10 min - 2 s, retention 10 min: P2, whose clock is 4 s ahead (allowed), puts k: X is late. The row goes on:
    pending(Y, before X). P2 dies before it voids X.
 3. A receive on a server whose clock is 4 s behind (allowed) claims X; its consumer acks it. The bucket is finished,
    and dropped at t0 + window + 10 s (history 0).
 4. P3 puts k. Within the window of 12 minutes, which counts from the first put, it is told X. After it the row is gone,
    and the message is a new one. The naive engine had counted the row's life from P2 on: P3 voided X in a bucket that
    was gone, and wrote at Y, by a row that named what nobody could look at any more.
"""

from __future__ import annotations

import pytest

from angelhair.engine.schema import KEYS, STATES
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.faults import NEVER_SENT
from tests.queues import MINUTE, SECOND, World

SETTINGS = {"bucket_size": 1, "repair_timeout_ms": 5 * SECOND, "history_ms": 0, "dedup_window_ms": 12 * MINUTE}


def voids(change) -> bool:
    return any((row.values or {}).get("settled") == "void" for row in change.rows)


@pytest.mark.parametrize("within", [True, False])
async def test_r10_once_within_the_window(world: World, within: bool) -> None:
    first, worker = world.server(), world.server()
    ahead, behind = world.server(ahead_ms=4 * SECOND), world.server(ahead_ms=-4 * SECOND)
    await worker.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    first.store.next("change", KEYS, NEVER_SENT, times=1000, when=lambda c: c.rows[0].values["status"] == "committed")
    await first.put_outcomes("orders", [NewMessage(b"m", key="k")])
    world.wait(10 * MINUTE - 2 * SECOND)
    ahead.store.next("change", STATES, NEVER_SENT, times=1000, when=voids)
    (unknown,) = await ahead.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(unknown, StoreError)
    got = [delivery.id for delivery in await behind.take("orders")]
    assert got == [MessageId(0, 0)]
    await worker.put("orders", b"next")
    await worker.drain("orders")
    await world.work("orders", MINUTE if within else 5 * MINUTE, [worker])
    assert ((await world.marks("orders")).floor > 0) is not within
    (outcome,) = await worker.put_outcomes("orders", [NewMessage(b"m", key="k")])
    got += [delivery.id for delivery in await worker.drain("orders") if delivery.body == b"m"]
    assert not within or outcome == MessageId(0, 0)
    assert got == ([MessageId(0, 0)] if within else [MessageId(0, 0), outcome])
