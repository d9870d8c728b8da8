"""Two receives that read one bucket at once must not make it full.

Naive: bodies are counted, not ids. Five plain ones read twice and five with keys are then ten without a key; the bucket
is dropped although its keys have not lapsed, and a repeated put delivers its message a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import HookedStore, bodies, consume, new_world, on, played, server

SIZE = 10


def settings() -> QueueSettings:
    return QueueSettings(
        bucket_size=SIZE, repair_timeout_ms=600_000, history_ms=0, visibility_timeout_ms=60_000,
    )


async def two_receives_at_once(engine: Engine, store: HookedStore, ask: int) -> list[Any]:
    """Both have sent their read of the bodies before either has its answer."""
    arrived, go = 0, asyncio.Event()

    async def meet(items: Sequence[Any]) -> None:
        nonlocal arrived
        if on(BODIES)(items):
            arrived += 1
            if arrived == 2:
                go.set()
            if arrived > 2:  # every call takes its time
                await asyncio.sleep(0.01)
            await go.wait()

    store.hooks["read"] = meet
    answers = await asyncio.wait_for(
        asyncio.gather(*(engine.receive("shop", "jobs", [Ask(ask)]) for _ in range(2))), 5)
    del store.hooks["read"]
    return [delivery for (found,) in answers for delivery in found]


@played
async def test_missing_ids_are_not_full() -> None:
    """Harmless to A1 alone (admission and finishing count state rows), but the patience of A7 is skipped."""
    clock, memory = new_world()
    store = HookedStore(memory)
    engine, slow = server(store, clock), server(memory, clock)
    await engine.create_queue("shop", "jobs", settings())
    await engine.put("shop", "jobs", [NewMessage(b"%d" % n) for n in range(2)])
    await engine.receive("shop", "jobs", [Ask(10)])  # opens the bucket and reads what is there
    await engine.put("shop", "jobs", [NewMessage(b"later %d" % n, delay_ms=1_000) for n in range(4)])
    await slow.reserve("shop", "jobs", 4)  # its rows are still on their way
    await engine.put("shop", "jobs", [NewMessage(b"next", delay_ms=1_000)])
    await two_receives_at_once(engine, store, 10)
    await consume(engine, clock, steps=60)
    view = engine.memory.lane(await engine.find_queue("shop", "jobs"), 0).view
    (marks,) = (await engine.marks("shop", "jobs")).values()
    assert 0 not in view.full, "4 of 10 ids are missing"
    assert marks.final == 0, "the bucket was made final without patience for the ids that are missing"


@played
async def test_a_pending_key_in_a_bucket_counted_twice() -> None:
    clock, memory = new_world()
    store, dying = HookedStore(memory), HookedStore(memory)
    engine, mortal = server(store, clock), server(dying, clock)
    await engine.create_queue("shop", "jobs", settings())
    await engine.put("shop", "jobs", [NewMessage(b"%d" % n) for n in range(2)])
    (received,) = await engine.receive("shop", "jobs", [Ask(10)])  # opens the bucket and reads what is there
    assert isinstance(received, list)
    await engine.put("shop", "jobs", [NewMessage(b"later %d" % n, delay_ms=1_000) for n in range(4)])
    # The putter writes its keyed messages and dies before it commits their keys: they stay pending.
    keyed = [NewMessage(b"keyed %d" % n, delay_ms=1_000, key=f"k{n}") for n in range(4)]

    async def die_at_commit(items: Sequence[Any]) -> None:
        rows = [row for item in items for row in getattr(item, "rows", ())]
        if any((row.values or {}).get("status") == "committed" for row in rows):
            raise asyncio.CancelledError

    dying.hooks["change"] = die_at_commit
    with contextlib.suppress(asyncio.CancelledError):
        await mortal.put("shop", "jobs", keyed)
        raise AssertionError("the putter should be dead")
    await engine.put("shop", "jobs", [NewMessage(b"next", delay_ms=1_000)])
    assert await two_receives_at_once(engine, store, 10) == []
    await engine.ack("shop", "jobs", [one.receipt for one in received])
    clock.ms += 1_000
    for _ in range(5):  # consumers are faster than the worker, as they are under load
        (found,) = await engine.receive("shop", "jobs", [Ask(10)])
        assert isinstance(found, list)
        await engine.ack("shop", "jobs", [one.receipt for one in found])
        received += found
    received += await consume(engine, clock, steps=100)
    assert bodies(received).count(b"keyed 0") == 1
    # The client repeats its put well within the window, as it should.
    answers = await engine.put("shop", "jobs", keyed)
    assert all(isinstance(answer, MessageId) for answer in answers)
    received += await consume(engine, clock, steps=100)
    assert bodies(received).count(b"keyed 0") == 1, "one key, two messages"
