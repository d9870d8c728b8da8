"""Attacks by servers all of whose clocks are wrong, that sleep at the wrong moment, or that are a few seconds slow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.clock import Clock
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES, LEASES, POINTERS
from angelhair.engine.store import Store
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import (
    Halt,
    HookedStore,
    SkewedClock,
    SteppedClock,
    bodies,
    die,
    new_world,
    on,
    played,
    receive_one,
    server,
)

PATIENCE_MS = 240_000
"""Four times the default repair time-out: time enough for two reluctant holders, each of which has to begin anew."""


async def work(clock: SteppedClock, servers: Sequence[Engine], for_ms: int, received: list[bytes]) -> None:
    """Every server steps and receives and acks, once a second."""
    for _ in range(for_ms // 1_000):
        clock.ms += 1_000
        for one in servers:
            await one.step("shop", "jobs")
            (deliveries,) = await one.receive("shop", "jobs", [Ask(10)])
            assert isinstance(deliveries, list)
            received += bodies(deliveries)
            if deliveries:
                await one.ack("shop", "jobs", [delivery.receipt for delivery in deliveries])


async def leave_a_gap(store: Store, clock: Clock) -> None:
    """A producer dies between reserving an id and writing it."""
    dying_store = HookedStore(store)
    dying = server(dying_store, clock)
    dying_store.hooks["write"] = die(on(BODIES))
    with pytest.raises(asyncio.CancelledError):
        await dying.put("shop", "jobs", [NewMessage(b"never written")])


@pytest.mark.parametrize("count", [2, 3])
@played
async def test_servers_that_are_all_wrong_make_a_bucket_with_a_gap_final(count: int) -> None:
    """The clocks of all servers are wrong by more than the allowed error; a bucket has an id that was never written.
    The naive engine's reluctant holders passed the lease on before either had waited for the repair time-out, and as
    each began its wait anew, no bucket with a gap ever became final."""
    clock, store = new_world()
    servers = [server(store, SkewedClock(clock, error_ms)) for error_ms in (20_000, -40_000, 90_000)[:count]]
    await servers[0].create_queue("shop", "jobs", QueueSettings(bucket_size=2))
    await servers[0].put("shop", "jobs", [NewMessage(b"first")])
    await leave_a_gap(store, clock)
    received: list[bytes] = []
    # Long enough for the lease to have changed hands: the bucket is closed while somebody is in the middle of a hold.
    await work(clock, servers, 45_000, received)
    await servers[0].put("shop", "jobs", [NewMessage(b"second")])
    await work(clock, servers, PATIENCE_MS, received)
    assert sorted(received) == [b"first", b"second"]
    assert (await servers[0].marks("shop", "jobs"))[0].settled >= 1


@played
async def test_a_put_confirmed_into_a_closed_bucket_is_delivered_by_servers_that_are_all_wrong() -> None:
    """A producer sleeps before its write while the bucket is closed over the gap; all servers' clocks are wrong.
    An engine that left such a message to repair alone would wait for holders that never have the patience."""
    clock, store = new_world()
    slow_store = HookedStore(store)
    slow = server(slow_store, clock)
    servers = [server(store, SkewedClock(clock, error_ms)) for error_ms in (20_000, -40_000)]
    await servers[0].create_queue("shop", "jobs", QueueSettings(bucket_size=3))
    received: list[bytes] = []
    await work(clock, servers, 45_000, received)
    halt = Halt(on(BODIES))
    slow_store.hooks["write"] = halt
    await leave_a_gap(store, clock)
    putting = asyncio.create_task(slow.put("shop", "jobs", [NewMessage(b"late")]))
    await halt.reached.wait()
    await servers[0].put("shop", "jobs", [NewMessage(b"first"), NewMessage(b"second")])
    await work(clock, servers, 5_000, received)
    assert (await servers[0].marks("shop", "jobs"))[0].reader == 1
    halt.wake.set()
    (outcome,) = await putting
    assert isinstance(outcome, MessageId)
    await work(clock, servers, PATIENCE_MS, received)
    assert sorted(received) == [b"first", b"late", b"second"]


@played
async def test_a_worker_that_sleeps_before_it_reads_the_marks_has_not_waited() -> None:
    """A worker takes the time and falls asleep before it reads the marks; a bucket is closed meanwhile, over a gap.
    The naive engine dated what it saw before its sleep, and its next step took the sleep for patience: the id of a
    write on its way was declared dead at once."""
    clock, store = new_world()
    sleepy_store = HookedStore(store)
    sleepy, other = server(sleepy_store, clock), server(store, clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=2))
    await sleepy.step("shop", "jobs")
    halt = Halt(on(POINTERS))
    sleepy_store.hooks["read"] = halt
    stepping = asyncio.create_task(sleepy.step("shop", "jobs"))
    await halt.reached.wait()
    await other.put("shop", "jobs", [NewMessage(b"first")])
    await leave_a_gap(store, clock)
    await other.put("shop", "jobs", [NewMessage(b"second")])
    for _ in range(70):
        clock.ms += 1_000
        await other.receive("shop", "jobs", [Ask(10)])
    assert (await other.marks("shop", "jobs"))[0].reader == 1
    halt.wake.set()
    sleepy_store.hooks.clear()
    await stepping
    for _ in range(20):
        clock.ms += 1_000
        await sleepy.step("shop", "jobs")
    assert (await other.marks("shop", "jobs"))[0].final == 0
    for _ in range(70):
        clock.ms += 1_000
        await sleepy.step("shop", "jobs")
    assert (await other.marks("shop", "jobs"))[0].final == 1


@played
async def test_a_server_that_sleeps_before_it_reads_the_lease_has_not_watched_it() -> None:
    """A server takes the time and falls asleep before it reads the lease's row, for longer than a lease.
    The naive engine dated the beat that it saw before its sleep, and took the lease from a holder that was beating."""
    clock, store = new_world()
    sleepy_store = HookedStore(store)
    holder, sleepy = server(store, clock), server(sleepy_store, clock)
    await holder.create_queue("shop", "jobs", QueueSettings())
    await holder.step("shop", "jobs")
    halt = Halt(on(LEASES))
    sleepy_store.hooks["read"] = halt
    watching = asyncio.create_task(sleepy.step("shop", "jobs"))
    await halt.reached.wait()
    for _ in range(30):
        clock.ms += 1_000
        await holder.step("shop", "jobs")
    halt.wake.set()
    sleepy_store.hooks.clear()
    await watching
    clock.ms += 1_000
    await sleepy.step("shop", "jobs")
    worker = next(iter(sleepy.memory.workers.values()))
    assert not worker.lease.held(clock.now())
    worker = next(iter(holder.memory.workers.values()))
    clock.ms += 1_000
    await holder.step("shop", "jobs")
    assert worker.lease.held(clock.now())


@pytest.mark.parametrize("slow_ms", [1_000, 3_000, 4_900])
@played
async def test_what_a_slow_server_had_in_flight_when_it_died_comes_back_soon(slow_ms: int) -> None:
    """A server a few seconds slow claims with a short time-out, in a slot of the wake index that the worker has passed
    since the server wrote a row there; then it dies.
    The naive engine remembered that row, wrote no other, and nobody looked into the bucket for a minute or more."""
    clock, store = new_world()
    dying, other = server(store, SkewedClock(clock, -slow_ms)), server(store, clock)
    settings = QueueSettings(bucket_size=100, visibility_timeout_ms=100)
    await dying.create_queue("shop", "jobs", settings)
    longest_ms = 0
    for _ in range(6):
        while (await other.marks("shop", "jobs"))[0].wake_raised * 1_000 + 1_000 < clock.ms:
            await other.step("shop", "jobs")
            clock.ms += 50
        clock.ms += -clock.ms % 1_000 + 29_000  # the worker is about to move the marks
        await dying.put("shop", "jobs", [NewMessage(b"-")])
        await dying.ack("shop", "jobs", [(await receive_one(dying)).receipt])
        raised = (await other.marks("shop", "jobs"))[0].wake_raised
        while (await other.marks("shop", "jobs"))[0].wake_raised == raised:
            clock.ms += 100
            await other.step("shop", "jobs")
            await other.receive("shop", "jobs", [Ask(10)])
        await dying.put("shop", "jobs", [NewMessage(b"message")])
        assert (await receive_one(dying)).body == b"message"
        began_ms = clock.ms
        while not (back := await receive_all(other)):
            clock.ms += 200
            await other.step("shop", "jobs")
        assert bodies(back) == [b"message"]
        longest_ms = max(longest_ms, clock.ms - began_ms)
    assert longest_ms <= 5_000


async def receive_all(engine: Engine) -> list[Any]:
    (deliveries,) = await engine.receive("shop", "jobs", [Ask(10)])
    assert isinstance(deliveries, list)
    if deliveries:
        await engine.ack("shop", "jobs", [delivery.receipt for delivery in deliveries])
    return deliveries
