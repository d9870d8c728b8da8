"""A confirmed put with a key is lost: its pending row comes back, with the same token, after its time (A1, R10)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.schema import BODIES, KEYS, STATES
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import ARRIVE_LATE, NEVER_SENT
from tests.queues import HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 40 * MINUTE}

pytestmark = pytest.mark.usefixtures("delays_in_buckets")


@pytest.mark.parametrize("lands", [False, True])
async def test_a1_token_comes_back(world: World, lands: bool) -> None:
    """False is the control."""
    first, other = world.server(), world.server()
    await other.create("orders", retention_ms=70 * MINUTE, **SETTINGS)
    message = NewMessage(b"m", key="k")
    at_void, go = asyncio.Event(), asyncio.Event()
    tasks = []

    async def hold_void() -> None:
        at_void.set()
        await go.wait()

    async def q_moves_on() -> None:
        # Before the first put has written its body: Q finds it unwritten and old.
        world.wait(36 * MINUTE)

        async def wait_for_body() -> None:
            moved.set()
            await written.wait()

        # Q: the row names Y, before X. It sleeps there, before it reads the states of X.
        other.store.next(
            "change", KEYS, wait_for_body, after=True, when=lambda c: c.rows[0].values["before"] is not None
        )
        other.store.next(
            "change", STATES, hold_void, when=lambda c: any((r.values or {}).get("settled") == "void" for r in c.rows)
        )
        tasks.append(asyncio.create_task(other.put_outcomes("orders", [message])))
        await moved.wait()

    moved, written = asyncio.Event(), asyncio.Event()

    async def before_commit() -> None:
        written.set()
        await asyncio.wait_for(at_void.wait(), 10)  # Q has read the states and the key's row
        world.wait(5 * MINUTE)  # the key's row lapses
        if lands:
            await first.store.land()

    first.store.next("change", KEYS, ARRIVE_LATE)
    first.store.next("write", BODIES, q_moves_on)
    first.store.next("change", KEYS, before_commit, when=lambda c: c.rows[0].values["status"] == "committed")
    (outcome,) = await first.put_outcomes("orders", [message])
    other.store.next("write", BODIES, NEVER_SENT, times=1000)
    go.set()
    (said,) = await tasks[0]
    assert isinstance(said, StoreError), said
    got = await all_of(world, world.server(), ms=4 * MINUTE)
    assert not isinstance(outcome, MessageId) or got == [b"m"], (outcome, said, got)


@pytest.mark.parametrize("lands", [False, True])
async def test_a1_after_the_key_stood_for_another_message(world: World, lands: bool) -> None:
    """H's row is sent twice, and one copy is still on its way. Q goes on from its id, voids it and dies. The window is
    over, and another message has the key; that lapses as well. Now the copy lands, and H wakes up and commits it."""
    first, other = world.server(), world.server()
    await other.create("orders", retention_ms=70 * MINUTE, **SETTINGS)
    message = NewMessage(b"m", key="k", delay_ms=5 * HOUR)

    async def meanwhile() -> None:
        world.wait(36 * MINUTE)
        other.store.next("write", BODIES, NEVER_SENT, times=1000)
        (unknown,) = await other.put_outcomes("orders", [message])
        assert isinstance(unknown, StoreError)
        other.store.heal()
        world.wait(41 * MINUTE)
        await other.put("orders", b"another", key="k")
        world.wait(41 * MINUTE)
        if lands:
            await first.store.land()

    first.store.next("change", KEYS, ARRIVE_LATE)
    first.store.next("write", BODIES, meanwhile)
    (outcome,) = await first.put_outcomes("orders", [message])
    world.wait(4 * HOUR)
    got = await all_of(world, world.server(), ms=4 * MINUTE)
    assert not isinstance(outcome, MessageId) or b"m" in got, (outcome, got)
