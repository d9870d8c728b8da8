"""Attacks by a wall clock that jumps in the middle of a step, after it was found good and before it is read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine.engine import Engine
from angelhair.engine.schema import LEASES, POINTERS, SEQUENCES
from angelhair.engine.store import Table
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import (
    DAY_MS,
    HookedStore,
    SteppedClock,
    bodies,
    consume,
    new_world,
    on,
    played,
    server,
)


async def step_while_it_jumps(engine: Engine, store: HookedStore, clock: SteppedClock, table: Table) -> None:
    """One step, in the middle of which the wall clock jumps ten days ahead; it is right again afterwards."""

    async def jump(items: Sequence[Any]) -> None:
        if on(table)(items):
            clock.wall_error_ms = 10 * DAY_MS

    store.hooks["read"] = store.hooks["change"] = jump
    await engine.step("shop", "jobs")
    store.hooks.clear()
    clock.wall_error_ms = 0


@pytest.mark.parametrize("table", [LEASES, SEQUENCES, POINTERS], ids=["lease", "sequence", "marks"])
@played
async def test_a_jump_in_the_middle_of_a_step_drops_no_history(table: Table) -> None:
    """A bucket is finished and kept for a day; then the wall clock jumps while a step reads the marks.
    The naive engine had found its clock good before, read it anew after the marks, and dropped the history at once."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=1, repair_timeout_ms=100))
    await engine.put("shop", "jobs", [NewMessage(b"-")] * 4)
    await consume(engine, clock, steps=100)
    assert (await engine.marks("shop", "jobs"))[0].repair == 4
    for _ in range(20):
        clock.ms += 3_000
        await step_while_it_jumps(engine, hooked, clock, table)
    assert (await engine.marks("shop", "jobs"))[0].floor == 0


@pytest.mark.parametrize("table", [LEASES, SEQUENCES, POINTERS], ids=["lease", "sequence", "marks"])
@played
async def test_a_jump_in_the_middle_of_a_step_doubles_nothing(table: Table) -> None:
    """A key is left pending and its message acked; the clock jumps while a step reads the marks; the client tries
    again. The naive engine took the key for lapsed, dropped the bucket that it names, and delivered it twice."""

    async def keep_it_pending(changes: Sequence[Any]) -> list[Any] | None:
        committing = any((row.values or {}).get("status") == "committed" for item in changes for row in item.rows)
        return [Unavailable("no node") for _ in changes] if committing else None

    clock, store = new_world()
    hooked = HookedStore(store)
    engine, other = server(hooked, clock), server(store, clock)
    settings = QueueSettings(bucket_size=1, history_ms=0, repair_timeout_ms=100)
    await engine.create_queue("shop", "jobs", settings)
    hooked.hooks["change"] = keep_it_pending
    (unknown,) = await engine.put("shop", "jobs", [NewMessage(b"message", key="key")])
    assert isinstance(unknown, OutcomeUnknown)
    hooked.hooks.clear()
    await engine.put("shop", "jobs", [NewMessage(b"-")])
    received = await consume(engine, clock, steps=100)
    for _ in range(20):
        clock.ms += 3_000
        await step_while_it_jumps(engine, hooked, clock, table)
    assert await other.put("shop", "jobs", [NewMessage(b"message", key="key")]) == [MessageId(0, 0)]
    received += await consume(other, clock, steps=50)
    assert bodies(received).count(b"message") == 1


@pytest.mark.parametrize("table", [LEASES, SEQUENCES, POINTERS], ids=["lease", "sequence", "marks"])
@played
async def test_a_jump_in_the_middle_of_a_step_closes_nothing_that_nobody_received(table: Table) -> None:
    """Messages wait for a consumer when the wall clock jumps while a step reads the marks.
    The naive engine took them for expired and closed their bucket, and they had to wait for their repair."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=2))
    await engine.put("shop", "jobs", [NewMessage(b"message")] * 5)
    await engine.step("shop", "jobs")
    for _ in range(20):
        clock.ms += 3_000
        await step_while_it_jumps(engine, hooked, clock, table)
    assert (await engine.marks("shop", "jobs"))[0].reader == 0
    assert len(await consume(engine, clock, steps=10)) == 5
