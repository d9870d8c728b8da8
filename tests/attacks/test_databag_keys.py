"""Attacks on the keys of databags: windows that change or pass while a put is under way, and a message's date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.engine.store import Store, Write
from angelhair.errors import OutcomeUnknown
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import SteppedClock, new_world, played, server
from tests.faults import NEVER_SENT, FaultyStore

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
WINDOW_MS = 5 * MINUTE_MS


def has_a_body(write: Write) -> bool:
    return any("body" in row.values for row in write.rows)


async def create(engine: Engine, **settings: Any) -> None:
    made = {"visibility_timeout_ms": SECOND_MS, "dedup_window_ms": WINDOW_MS, **settings}
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG, **made))


async def put(engine: Engine, body: bytes, key: str | None = "k", attributes: str | None = None) -> object:
    (outcome,) = await engine.put("shop", "bag", [NewMessage(body, key=key, attributes=attributes)])
    return outcome


async def drain(engine: Engine, clock: SteppedClock) -> list[Delivery]:
    """All that is served within ten seconds, each deleted."""
    found: list[Delivery] = []
    for _ in range(10):
        (some,) = await engine.receive("shop", "bag", [Ask(100)])
        assert isinstance(some, list), some
        await engine.ack("shop", "bag", [delivery.receipt for delivery in some])
        found += some
        clock.ms += SECOND_MS
    return found


async def died_before_its_body(store: Store, clock: SteppedClock) -> None:
    """A server that had named the key's id and held its place, and nobody hears of it again."""
    faulty = FaultyStore(store)
    faulty.next("write", BAG_MESSAGES, NEVER_SENT, when=has_a_body, times=100)
    assert isinstance(await put(server(faulty, clock), b"died"), OutcomeUnknown)


def waylaid(store: Store, clock: SteppedClock, happening: Callable[[], Any]) -> Engine:
    """A server that sleeps once, after its place is held for sure and before its body is written."""
    faulty = FaultyStore(store)
    faulty.next("write", BAG_MESSAGES, happening, when=has_a_body)
    return server(faulty, clock)


@played
async def test_a1_a_window_that_was_made_shorter_loses_no_message_that_is_confirmed_by_the_old_one() -> None:
    """A place was held 50 s ago, by who died. The window is patched from 5 minutes to 1 s. Another server, whose sync
    is 25 s old, completes the put; the worker, who knows the new window, gives the place up and finishes its epoch
    before the body comes. The putter finds a body there, its own, takes it for what was put before, and confirms."""
    clock, store = new_world()
    worker = server(store, clock)
    await create(worker)

    async def step() -> None:
        await worker.step("shop", "bag")

    putter = waylaid(store, clock, step)
    clock.ms += limits.BAG_EPOCH_AGE_MS
    await died_before_its_body(store, clock)
    clock.ms += 25 * SECOND_MS
    await putter.stats("shop", "bag")
    await worker.change_queue("shop", "bag", {"dedup_window_ms": SECOND_MS})
    clock.ms += limits.BAG_SYNC_MS - 5 * SECOND_MS
    outcome = await put(putter, b"confirmed")
    given = [delivery.body for delivery in await drain(worker, clock)]
    assert given == [b"confirmed"] or isinstance(outcome, OutcomeUnknown), (outcome, given)


@played
async def test_r10_who_sleeps_past_its_window_is_not_put_beside_the_message_that_it_is_told_of() -> None:
    """The sleeper has held its place; its window passes, and another put has the key. The sleeper writes its body,
    which is served, finds that the key names another, and is told that one: one put, two messages."""
    clock, store = new_world()
    other = server(store, clock)
    await create(other)
    named: list[object] = []

    async def window_passes() -> None:
        clock.ms += WINDOW_MS + SECOND_MS
        named.append(await put(other, b"other"))

    outcome = await put(waylaid(store, clock, window_passes), b"slept")
    given = {delivery.body: delivery.id for delivery in await drain(other, clock)}
    assert isinstance(named[0], MessageId)
    if outcome == named[0]:
        assert given == {b"other": outcome}, "it was told that it is one message with the other"


@played
async def test_a1_a_put_that_completes_another_is_kept_for_its_own_retention() -> None:
    """Who completes what another began two minutes ago dates it by that. Where the retention is a minute, its message
    is past it before it is confirmed."""
    clock, store = new_world()
    engine = server(store, clock)
    await create(engine, retention_ms=MINUTE_MS)
    await died_before_its_body(store, clock)
    clock.ms += 2 * MINUTE_MS
    assert isinstance(await put(engine, b"new"), MessageId)
    assert [delivery.body for delivery in await drain(engine, clock)] == [b"new"]


@played
async def test_r10_two_puts_with_one_key_are_not_mixed_into_a_message_that_nobody_put() -> None:
    """Two put at once with one key: one with attributes, one without. Both write the same row, the one without last."""
    clock, store = new_world()
    other = server(store, clock)
    await create(other)

    async def other_puts() -> None:
        assert isinstance(await put(other, b"with", attributes='{"colour":"red"}'), MessageId)

    await put(waylaid(store, clock, other_puts), b"without")
    (given,) = await drain(other, clock)
    assert (given.body, given.attributes) in [(b"with", '{"colour":"red"}'), (b"without", None)]


@played
async def test_r10_a_window_that_was_made_shorter_does_not_make_two_of_a_message_that_is_under_way() -> None:
    """A server has written its body, and sleeps before it looks at the epoch again. The message is served and deleted,
    the window is patched from 5 minutes to 1 s, and its epoch is finished and dropped after that. The sleeper, whose
    window is not over, finds nothing at its place, takes it for void, and puts the message again."""
    clock, store = new_world()
    other, faulty = server(store, clock), FaultyStore(store)
    await create(other, history_ms=0)
    given: list[Delivery] = []

    async def all_of_it_passes() -> None:
        clock.ms += SECOND_MS
        given.extend(await drain(other, clock))
        await other.change_queue("shop", "bag", {"dedup_window_ms": SECOND_MS})
        for _ in range(10):
            clock.ms += 10 * SECOND_MS
            await other.step("shop", "bag")

    faulty.next("write", BAG_MESSAGES, all_of_it_passes, when=has_a_body, after=True)
    clock.ms += limits.BAG_EPOCH_AGE_MS
    await put(server(faulty, clock), b"one")
    given += await drain(other, clock)
    assert [delivery.body for delivery in given] == [b"one"], "one key, one message"
