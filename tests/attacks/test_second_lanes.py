"""Attacks on the making and the forgetting of lanes, and on leases that a wrong clock holds for long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine.engine import Engine
from angelhair.engine.schema import POINTERS, SEQUENCES
from angelhair.engine.store import Partition, Span, Table
from angelhair.errors import AngelhairError, OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage, QueueSettings
from angelhair.stores.memory import MemoryStore
from tests.attacks.worlds import (
    DAY_MS,
    HookedStore,
    LandsLate,
    SkewedClock,
    SteppedClock,
    bodies,
    consume,
    new_world,
    on,
    played,
    server,
)


class Remembering(MemoryStore):
    """A store that can say which partitions still hold a row."""

    async def holding(self) -> set[Partition]:
        found = set()
        for partition in list(self._partitions):
            (part,) = await self.read([Span(partition)])
            if part.rows or part.flags:
                found.add(partition)
        return found


async def bury_all(engine: Engine) -> None:
    for _ in range(200):
        if not await engine.bury_step():
            return
    raise AssertionError("there is no end to the burial")


@pytest.mark.parametrize("ended", [False, True], ids=["all lanes open", "a lane came to its end"])
@played
async def test_of_a_deleted_queue_nothing_is_left(ended: bool) -> None:
    """A queue is deleted and buried; a month and a day go by.
    An engine that leaves a mark behind for every lane, and takes some of them back by no means, fills its store."""
    clock = SteppedClock()
    store = Remembering(lambda: clock.ms)
    engine = server(store, clock)
    settings = QueueSettings(bucket_size=2, lanes=2, history_ms=0, repair_timeout_ms=100)
    await engine.create_queue("shop", "jobs", settings)
    for _ in range(6):
        await engine.put("shop", "jobs", [NewMessage(b"-")])
    if ended:
        await engine.change_queue("shop", "jobs", {"lanes": 1})
        await consume(engine, clock, steps=600)
        assert len((await engine.find_queue("shop", "jobs")).lanes) == 1
    await engine.delete_queue("shop", "jobs")
    await bury_all(engine)
    clock.ms += 31 * DAY_MS
    assert await store.holding() == set()


@played
async def test_new_lanes_whose_making_is_unknown_take_no_message() -> None:
    """A queue gets a second lane; the making of it is on its way. The queue is deleted, buried and made again; then
    the making lands, and a server that has not heard of all this puts a message.
    The naive engine used the lane, and a copy of its making brought it back after its burial."""
    clock, store = new_world()
    slow_store = HookedStore(store)
    slow, unaware, other = server(slow_store, clock), server(store, clock), server(store, clock)
    await slow.create_queue("shop", "jobs", QueueSettings())
    late = LandsLate(on(SEQUENCES))
    slow_store.hooks["change"] = late
    changed = await slow.change_queue("shop", "jobs", {"lanes": 2})
    assert len(changed.open_lanes) == 2
    slow_store.hooks.clear()
    await unaware.find_queue("shop", "jobs")
    await other.delete_queue("shop", "jobs")
    await bury_all(other)
    await other.create_queue("shop", "jobs", QueueSettings())
    clock.ms += 1_000
    await store.change(late.items)
    for _ in range(4):
        (outcome,) = await unaware.put("shop", "jobs", [NewMessage(b"message")])
        assert isinstance(outcome, MessageId)
    assert bodies(await consume(other, clock)) == [b"message"] * 4


@pytest.mark.parametrize("table", [SEQUENCES, POINTERS], ids=["sequence", "marks"])
@played
async def test_a_queue_whose_making_failed_in_part_is_made_or_not(table: Table) -> None:
    """Of the writes that make a queue's lanes some fail, each in another way; the client tries until it is told yes.
    An engine that took the failed try's lanes for made would confirm puts into a lane without marks."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    tries = 0

    async def fail_in_part(items: Sequence[Any]) -> list[Any] | None:
        nonlocal tries
        if not on(SEQUENCES)(items) or tries >= 3:
            return None
        tries += 1
        kept = [item for item in items if item.partition.table is not table]
        outcomes = iter(await store.change(kept))
        error = [OutcomeUnknown("timed out"), Unavailable("no node"), OutcomeUnknown("timed out")][tries - 1]
        return [next(outcomes) if item.partition.table is not table else error for item in items]

    hooked.hooks["change"] = fail_in_part
    for _ in range(5):
        try:
            await engine.create_queue("shop", "jobs", QueueSettings(lanes=3, bucket_size=10))
            break
        except AngelhairError:
            continue
    for _ in range(6):
        assert isinstance((await engine.put("shop", "jobs", [NewMessage(b"message")]))[0], MessageId)
    assert bodies(await consume(engine, clock, steps=20)) == [b"message"] * 6


@played
async def test_a_wrong_clock_stands_aside_however_long_the_repair_time_out_is() -> None:
    """A server whose clock is wrong holds the lease of a queue with a repair time-out of a week; another one is right.
    The naive engine held on for longer than the repair time-out, and for a week nothing expired and nothing went."""
    clock, store = new_world()
    wrong, right = server(store, SkewedClock(clock, 60_000)), server(store, clock)
    settings = QueueSettings(bucket_size=1, history_ms=0, repair_timeout_ms=7 * DAY_MS)
    await wrong.create_queue("shop", "jobs", settings)
    await wrong.step("shop", "jobs")
    await right.put("shop", "jobs", [NewMessage(b"-"), NewMessage(b"-")])
    await consume(right, clock, steps=10)
    for _ in range(600):
        clock.ms += 1_000
        await wrong.step("shop", "jobs")
        await right.step("shop", "jobs")
    assert (await right.marks("shop", "jobs"))[0].dropped >= 1
