"""A put raises ValueError after its effects: `_commit` counts answers that it has just taken back (A1: unknown is
unknown)."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES, KEYS
from angelhair.errors import OutcomeUnknown
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.queues import HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 5 * MINUTE}


@pytest.mark.parametrize("slept_ms", [4 * MINUTE, 6 * MINUTE])
async def test_r10_commit_of_a_repeated_row(world: World, slept_ms: int) -> None:
    """4 minutes is the control. `other` shares its group: its message is in the queue, its caller gets a ValueError."""
    server = world.server()
    await server.create("orders", **SETTINGS)
    server.store.next("change", KEYS, NEVER_SENT, when=lambda c: c.rows[0].key == "k")

    async def sleep() -> None:
        world.wait(slept_ms)

    server.store.next("write", BODIES, sleep)
    server.store.next(
        "change", KEYS, NEVER_SENT, times=1000,
        when=lambda c: c.rows[0].key == "k" and c.rows[0].values["status"] == "committed",
    )
    said = await server.put_outcomes("orders", [NewMessage(b"m", key="k"), NewMessage(b"n", key="other")])
    assert isinstance(said[0], OutcomeUnknown)
