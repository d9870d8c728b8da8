"""A confirmed put is lost: in a second round its key's row is absent, and it is taken with the old, void id (A1)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.schema import BODIES, KEYS, STATES
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * MINUTE}

pytestmark = pytest.mark.usefixtures("delays_in_buckets")


@pytest.mark.parametrize("slept_ms", [SECOND, 7 * MINUTE])
async def test_a1_second_round(world: World, slept_ms: int) -> None:
    """A second is the control."""
    p1, q, p3 = world.server(), world.server(), world.server()
    await p1.create("orders", retention_ms=10 * MINUTE, **SETTINGS)
    events = [asyncio.Event() for _ in range(4)]

    def hold(reached: asyncio.Event, go: asyncio.Event):
        async def sleep() -> None:
            reached.set()
            await go.wait()
        return sleep

    p1.store.next("write", BODIES, hold(events[0], events[1]))
    putting = asyncio.create_task(p1.put_outcomes("orders", [NewMessage(b"one", None, HOUR, "k")]))
    await asyncio.wait_for(events[0].wait(), 5)
    world.wait(5 * MINUTE + SECOND)
    # Q: X is unwritten and old: pending(Y, before X); it dies before it voids X.
    q.store.next("change", STATES, NEVER_SENT, times=1000)
    (said,) = await q.put_outcomes("orders", [NewMessage(b"q", key="k")])
    assert isinstance(said, StoreError)
    # P1 writes X; its commit is refused; it goes another round, and sleeps before it.
    p1.store.next(
        "change", KEYS, hold(events[2], events[3]), when=lambda c: c.rows[0].values["status"] == "pending"
    )
    events[1].set()
    await asyncio.wait_for(events[2].wait(), 5)
    world.wait(MINUTE)
    # P3, more than a window after P1's put: voids X, takes the row.
    await p3.put("orders", b"three", key="k")
    assert [d.body for d in await p3.drain("orders")] == [b"three"]
    world.wait(slept_ms)
    events[3].set()
    (said,) = await putting
    world.wait(48 * MINUTE)
    got = await all_of(world, world.server())
    assert got == [b"one"] or not isinstance(said, MessageId) or slept_ms == SECOND, (said, got)
