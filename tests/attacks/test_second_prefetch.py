"""Attacks on what a server has read ahead of demand: purged, taken by others, or given out a moment ago."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.store import Change
from angelhair.model import Ask, Delivery, NewMessage, QueueSettings
from tests.attacks.worlds import Halt, HookedStore, bodies, consume, new_world, on, played, server


async def receive(engine: Engine, most: int, visibility_ms: int | None = None) -> list[Delivery]:
    (deliveries,) = await engine.receive("shop", "jobs", [Ask(most, visibility_ms)])
    assert isinstance(deliveries, list), deliveries
    return deliveries


async def ack_all(engine: Engine, deliveries: list[Delivery]) -> None:
    if deliveries:
        assert set(await engine.ack("shop", "jobs", [delivery.receipt for delivery in deliveries])) == {None}


def numbered(count: int) -> list[NewMessage]:
    return [NewMessage(b"%d" % number) for number in range(count)]


@played
async def test_what_was_purged_does_not_stand_before_what_is_there() -> None:
    """A server has read a hundred messages ahead when another one purges the queue and puts a new message.
    The naive engine threw the purged ones away one receive at a time, and each came back empty."""
    clock, store = new_world()
    reading, other = server(store, clock), server(store, clock)
    await reading.create_queue("shop", "jobs", QueueSettings(bucket_size=1_000))
    await reading.put("shop", "jobs", numbered(100))
    await receive(reading, 1)
    await other.purge("shop", "jobs")
    await other.put("shop", "jobs", [NewMessage(b"message")])
    assert bodies(await receive(reading, 1)) == [b"message"]


@played
async def test_what_was_visible_again_and_purged_does_not_stand_before_what_is_there() -> None:
    """As above, but the messages had been delivered before and were visible again when the queue was purged.
    The naive engine cleaned its list of new messages only, and receives came back empty while it held others."""
    clock, store = new_world()
    reading, other = server(store, clock), server(store, clock)
    await reading.create_queue("shop", "jobs", QueueSettings(bucket_size=1_000))
    await reading.put("shop", "jobs", numbered(100))
    await receive(reading, 100, 1_000)
    clock.ms += 2_000
    await receive(reading, 1)
    await other.purge("shop", "jobs")
    await other.put("shop", "jobs", [NewMessage(b"message")])
    assert bodies(await receive(reading, 1)) == [b"message"]


@pytest.mark.parametrize("taken", [20, 128, 300, 700])
@pytest.mark.parametrize("bucket_size", [100, 1_000])
@played
async def test_what_others_took_does_not_stand_before_what_is_there(taken: int, bucket_size: int) -> None:
    """A server has read ahead; another one takes and acks all that, and more; hundreds are left.
    The naive engine tried the taken ones, a few with each receive, and each came back empty."""
    clock, store = new_world()
    idle, busy = server(store, clock), server(store, clock)
    await idle.create_queue("shop", "jobs", QueueSettings(bucket_size=bucket_size))
    await idle.put("shop", "jobs", numbered(1_000))
    await ack_all(idle, await receive(idle, 1))
    while taken:
        deliveries = await receive(busy, min(taken, 10))
        await ack_all(busy, deliveries)
        taken -= len(deliveries)
    assert len(await receive(idle, 10)) == 10
    assert len(await receive(idle, 10)) == 10


@played
async def test_what_was_visible_again_and_others_took_does_not_stand_before_what_is_there() -> None:
    """As above, but the messages had been delivered before and were visible again when the other server took them.
    The naive engine tried the taken ones, three with each receive, and each came back empty."""
    clock, store = new_world()
    idle, busy = server(store, clock), server(store, clock)
    await idle.create_queue("shop", "jobs", QueueSettings(bucket_size=1_000))
    await idle.put("shop", "jobs", numbered(200))
    await receive(idle, 200, 1_000)
    clock.ms += 2_000
    await receive(idle, 1)
    clock.ms += 2_000
    for _ in range(10):
        await ack_all(busy, await receive(busy, 10))
    assert (await busy.stats("shop", "jobs")).visible >= 90
    assert len(await receive(idle, 1)) == 1


@pytest.mark.parametrize("count", [1, 2, 40])
@played
async def test_nothing_is_skipped_by_servers_that_take_turns(count: int) -> None:
    """Servers receive in turn, with gaps in the buckets that are filled meanwhile, and each goes back to what another
    one took. An engine that went back too far, or not to its gaps, would leave messages to their repair time-out."""
    clock, store = new_world()
    servers = [server(store, clock) for _ in range(3)]
    slow_store = HookedStore(store)
    slow = server(slow_store, clock)
    await slow.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    halt = Halt(on(BODIES))
    received: list[bytes] = []
    putting: list[asyncio.Task[object]] = []
    for turn in range(60):
        if turn % 7 == 3:
            slow_store.hooks["write"] = halt
            putting.append(asyncio.create_task(slow.put("shop", "jobs", [NewMessage(b"slow %d" % turn)])))
            await halt.reached.wait()
        await servers[turn % 3].put("shop", "jobs", [NewMessage(b"%d.%d" % (turn, index)) for index in range(5)])
        deliveries = await receive(servers[turn % 2], count)
        await ack_all(servers[turn % 2], deliveries)
        received += bodies(deliveries)
        if turn % 20 == 19:
            halt.wake.set()
            await asyncio.gather(*putting)
            halt = Halt(on(BODIES))
        clock.ms += 10
    halt.wake.set()
    await asyncio.gather(*putting)
    for turn in range(400):
        clock.ms += 30
        deliveries = await receive(servers[turn % 3], count)
        await ack_all(servers[turn % 3], deliveries)
        received += bodies(deliveries)
    expected = {b"%d.%d" % (turn, index) for turn in range(60) for index in range(5)}
    expected |= {b"slow %d" % turn for turn in range(60) if turn % 7 == 3}
    assert len(received) == len(set(received))
    assert set(received) == expected


@played
async def test_two_receives_of_one_server_at_once_skip_nothing() -> None:
    """One receive of a server reads further while another one of the same server finds that others took its messages.
    The naive engine went back for the second, and forward again for the first, past what it had gone back for."""
    clock, store = new_world()
    hooked = HookedStore(store)
    reading, other = server(hooked, clock), server(store, clock)
    await reading.create_queue("shop", "jobs", QueueSettings(bucket_size=1_000))
    await reading.put("shop", "jobs", numbered(400))
    received = bodies(await receive(reading, 1, 60 * 60_000))
    received += bodies(await receive(reading, 10, 60 * 60_000))  # now it has read far ahead
    received += bodies(await receive(other, 1, 60 * 60_000))
    halt = Halt(on(BODIES))
    hooked.hooks["read"] = halt
    large = asyncio.create_task(receive(reading, 150, 60 * 60_000))
    await halt.reached.wait()
    hooked.hooks.clear()
    claims = 0

    async def let_the_large_one_go_on(changes: Sequence[Change]) -> None:
        nonlocal claims
        claims += on(STATES)(changes)
        if claims == 2:
            halt.wake.set()
            await large

    hooked.hooks["change"] = let_the_large_one_go_on
    received += bodies(await receive(reading, 20, 60 * 60_000))
    hooked.hooks.clear()
    received += bodies(await large)
    for _ in range(60):
        received += bodies(await receive(reading, 10, 60 * 60_000))
        clock.ms += 1_000
    assert sorted(received, key=int) == bodies_of(numbered(400))


def bodies_of(messages: list[NewMessage]) -> list[bytes]:
    return [message.body for message in messages]


@pytest.mark.parametrize("visibility_ms", [0, 1])
@pytest.mark.parametrize("asks", [(10,), (1, 4, 5), (3, 40)])
@pytest.mark.parametrize("lanes", [1, 3])
@played
async def test_a_batch_in_portions_holds_nothing_twice(
    monkeypatch: pytest.MonkeyPatch, visibility_ms: int, asks: tuple[int, ...], lanes: int
) -> None:
    """Large messages are served in several portions, to consumers that do not hide what they take.
    The naive engine found the first portion visible again, and put the same messages into the same answer."""
    monkeypatch.setattr(limits, "PORTION_BYTES", 2_000)
    monkeypatch.setattr(limits, "PREFETCH_BYTES", 2_000)
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=7, lanes=lanes, repair_timeout_ms=100))
    await engine.put("shop", "jobs", [NewMessage(b"%d" % number + bytes(1_000)) for number in range(10)])
    await engine.put("shop", "jobs", [NewMessage(b"%d" % number + bytes(1_000)) for number in range(10, 20)])
    await engine.put("shop", "jobs", [NewMessage(b"%d" % number + bytes(1_000)) for number in range(20, 30)])
    for _ in range(10):
        answers = await engine.receive("shop", "jobs", [Ask(most, visibility_ms) for most in asks])
        given = [delivery for answer in answers if isinstance(answer, list) for delivery in answer]
        assert given
        assert len({delivery.id for delivery in given}) == len(given)
        clock.ms += 1
    left = set(bodies(await consume(engine, clock, steps=600)))
    assert len(left) == 30


@played
async def test_a_batch_in_portions_is_as_full_as_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """One consumer of a group hides what it takes and another one does not; the messages come in portions.
    The naive engine stopped at the first portion that held something given out before, though others were waiting."""
    monkeypatch.setattr(limits, "PORTION_BYTES", 2_000)
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    await engine.put("shop", "jobs", [NewMessage(b"%d" % number + bytes(1_000)) for number in range(30)])
    await ack_all(engine, await receive(engine, 2))
    looking, taking = await engine.receive("shop", "jobs", [Ask(1, 0), Ask(10)])
    assert isinstance(looking, list) and isinstance(taking, list)
    assert len(looking) == 1
    assert len(taking) == 10
