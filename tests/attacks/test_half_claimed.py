"""A claim that is decided, and whose commit is on its way, seen in part (row 19 of docs/cassandra.md)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from angelhair.engine.schema import KEYS, STATES
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.half_committed import HalfCommitted
from tests.attacks.minority import never
from tests.attacks.worlds import HookedStore, bodies, new_world, played, server

SECOND = 1_000
MINUTE = 60 * SECOND


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_claim_that_is_seen_in_part_hides_its_message(near: bool) -> None:
    """Who goes on with a key asks whether its id was given up, and asks for delivery and revision, not for how long.
    Naive: what has a delivery and no time-out is visible; it was given to a second consumer at once (A2)."""
    clock, store = new_world()
    dying = HookedStore(store)

    async def commits(items: Any) -> None:
        if any(item.partition.table is KEYS and row.values.get("status") == "committed"
               for item in items for row in item.rows):
            raise asyncio.CancelledError

    dying.hooks["change"] = commits
    half = HalfCommitted(store, STATES, lambda change: any("claim" in (row.values or {}) for row in change.rows))
    half.lands = asyncio.Event()
    first, claimer = server(dying, clock), server(half.writer(), clock)
    second, other = server(half.seen(), clock), server(half.seen(), clock)
    await second.create_queue("shop", "jobs", QueueSettings(visibility_timeout_ms=MINUTE))
    with pytest.raises(asyncio.CancelledError):
        await first.put("shop", "jobs", [NewMessage(b"keyed", key="k")])
    claiming = asyncio.create_task(claimer.receive("shop", "jobs", [Ask(1)]))
    await half.reached.wait()
    if near:
        half.near = lambda span: span.partition.table is STATES
    (confirmed,) = await second.put("shop", "jobs", [NewMessage(b"keyed", key="k")])
    assert isinstance(confirmed, MessageId)
    half.near = never
    got: list[bytes] = []
    for step in range(100):
        if step == 1:
            half.lands.set()
        (found,) = await other.receive("shop", "jobs", [Ask(1)])
        assert isinstance(found, list)
        got += bodies(found)
        await other.step("shop", "jobs")
        clock.ms += 100
    (claimed,) = await claiming
    assert isinstance(claimed, list)
    assert bodies(claimed) + got == [b"keyed"]
