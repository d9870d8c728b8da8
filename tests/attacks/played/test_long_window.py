"""A put raises ValueError: a key's row would live longer than the store allows (a window of 20 years is a valid
setting)."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, KEYS
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import HOUR, SECOND, World


@pytest.mark.parametrize("window_ms", [HOUR, limits.TTL_MAXIMUM_SECONDS * 1_000])
async def test_r10_longest_window(world: World, window_ms: int) -> None:
    p1, q = world.server(), world.server()
    await p1.create("orders", retention_ms=None, dedup_window_ms=window_ms)

    async def meanwhile() -> None:
        world.wait(10 * SECOND)
        q.store.next("write", BODIES, NEVER_SENT, times=1000)
        (said,) = await q.put_outcomes("orders", [NewMessage(b"m", key="k")])
        assert isinstance(said, StoreError)
        q.store.heal()
        await q.engine.purge(world.account, "orders")

    p1.store.next("change", KEYS, meanwhile)
    await p1.put("orders", b"m", key="k")
    assert await all_of(world, world.server()) == [b"m"]
