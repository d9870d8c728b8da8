"""A key's message comes twice within its window: who completes or moves on a pending key gets only what is left of the
old row's life; a second more and the commit finds nothing (R10)."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES
from angelhair.errors import OutcomeUnknown, StoreError
from angelhair.model import MessageId, NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 40 * MINUTE}


@pytest.mark.parametrize("retention_ms", [HOUR, 10 * HOUR])
@pytest.mark.parametrize("slow_ms", [0, 3 * SECOND])
async def test_r10_short_row(world: World, retention_ms: int, slow_ms: int) -> None:
    """An hour: X is unwritten and old, the key moves on to Y. Ten: it is completed at X. slow_ms=0 is the control."""
    first, second = world.server(), world.server()
    await first.create("orders", retention_ms=retention_ms, **SETTINGS)
    first.store.next("write", BODIES, NEVER_SENT, times=1000)
    (unknown,) = await first.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(unknown, StoreError)
    first.store.heal()
    world.wait(40 * MINUTE - SECOND)

    async def slow() -> None:
        world.wait(slow_ms)

    second.store.next("write", BODIES, slow)
    (outcome,) = await second.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(outcome, MessageId | OutcomeUnknown)
    # Its producer tries again at once, as it is told to: a few seconds, in a window of 40 minutes.
    (again,) = await second.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(again, MessageId)
    got = await all_of(world, world.server())
    assert got == [b"m"], (outcome, again, got)
