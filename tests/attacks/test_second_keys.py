"""Attacks on idempotency keys that were left pending: by purges, shorter windows, moves and a second writer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from angelhair.engine.engine import Engine
from angelhair.engine.schema import BODIES, KEYS, POINTERS
from angelhair.engine.store import Change, Span, Store
from angelhair.errors import AngelhairError, OutcomeUnknown, Unavailable
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import (
    Halt,
    Hook,
    HookedStore,
    SkewedClock,
    SteppedClock,
    bodies,
    consume,
    new_world,
    on,
    played,
    receive_one,
    refuse,
    server,
)

MESSAGE = NewMessage(b"message", key="key")
NAMED = MessageId(0, 0)
"""What its key names: the first id of the queue."""


def commits_a_key(changes: Sequence[Change]) -> bool:
    return on(KEYS)(changes) and (changes[0].rows[0].values or {}).get("status") == "committed"


def waylaid(store: Store, clock: SteppedClock, verb: str, hook: Hook) -> Engine:
    hooked = HookedStore(store)
    hooked.hooks[verb] = hook
    return server(hooked, clock)


async def put_one(engine: Engine, message: NewMessage = MESSAGE) -> MessageId | AngelhairError:
    (outcome,) = await engine.put("shop", "jobs", [message])
    return outcome


async def take_and_ack(engine: Engine) -> bytes:
    delivery = await receive_one(engine)
    assert await engine.ack("shop", "jobs", [delivery.receipt]) == [None]
    return delivery.body


@pytest.mark.parametrize("history_ms", [0, 86_400_000])
@played
async def test_a_message_that_was_delivered_before_a_purge_is_not_delivered_again(history_ms: int) -> None:
    """A key is left pending, its message is delivered and acked, the queue is purged; the client tries again.
    The naive engine took the purged id for one that had never been, and delivered the message under a new one."""
    clock, store = new_world()
    failing, other = waylaid(store, clock, "change", refuse(commits_a_key)), server(store, clock)
    settings = QueueSettings(bucket_size=1, history_ms=history_ms, repair_timeout_ms=100)
    await failing.create_queue("shop", "jobs", settings)
    assert isinstance(await put_one(failing), OutcomeUnknown)
    assert await take_and_ack(other) == b"message"
    await put_one(other, NewMessage(b"-"))
    await other.purge("shop", "jobs")
    for _ in range(60):
        clock.ms += 1_000
        await other.step("shop", "jobs")
    assert await put_one(other) == NAMED
    assert bodies(await consume(other, clock)) == []


@played
async def test_a_message_that_was_moved_before_a_purge_is_not_delivered_again() -> None:
    """A key is left pending, its message is redriven to another queue, the queue is purged; the client tries again.
    The naive engine asked whether the id had been delivered here, not whether it had gone, and put it a second time."""
    clock, store = new_world()
    failing, other = waylaid(store, clock, "change", refuse(commits_a_key)), server(store, clock)
    await failing.create_queue("shop", "other", QueueSettings(bucket_size=10))
    await failing.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    assert isinstance(await put_one(failing), OutcomeUnknown)
    assert await other.redrive("shop", "jobs", "other", 1) == 1
    await other.purge("shop", "jobs")
    assert isinstance(await put_one(other), MessageId)
    received = await consume(other, clock, "other", steps=50) + await consume(other, clock, steps=50)
    assert bodies(received) == [b"message"]


@pytest.mark.parametrize("delivered", [True, False])
@played
async def test_a_put_that_cannot_complete_a_pending_key_does_not_say_that_nothing_happened(delivered: bool) -> None:
    """A key is left pending by a put whose message is, or will be, delivered; the client tries again through a server
    whose writes of bodies fail.
    The naive engine answered `Unavailable`: that there is no such message, and never will be."""
    clock, store = new_world()
    failing, other = waylaid(store, clock, "change", refuse(commits_a_key)), server(store, clock)
    unable = waylaid(store, clock, "write", refuse(on(BODIES)))
    await failing.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    assert isinstance(await put_one(failing), OutcomeUnknown)
    if delivered:
        assert await take_and_ack(other) == b"message"
    outcome = await put_one(unable)
    assert not isinstance(outcome, Unavailable), outcome


@played
async def test_a_purged_id_and_a_store_that_is_away_do_not_make_a_certain_no() -> None:
    """A key is pending at a purged id that was delivered; the client's next put finds the key, and the store fails.
    The naive engine answered `Unavailable` for the new id, as if the old one had never been delivered."""
    clock, store = new_world()
    failing, other = waylaid(store, clock, "change", refuse(commits_a_key)), server(store, clock)
    hooked = HookedStore(store)
    unlucky = server(hooked, clock)
    await failing.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    assert isinstance(await put_one(failing), OutcomeUnknown)
    assert await take_and_ack(other) == b"message"
    await other.purge("shop", "jobs")
    seen = 0

    async def fail_from_the_second_body_on(writes: Sequence[object]) -> list[Unavailable] | None:
        nonlocal seen
        seen += on(BODIES)(writes)
        return [Unavailable("no node") for _ in writes] if seen > 1 else None

    hooked.hooks["write"] = fail_from_the_second_body_on
    outcome = await put_one(unlucky)
    assert not isinstance(outcome, Unavailable), outcome


@pytest.mark.parametrize("tries", [1, 2], ids=["committed by the retry", "left pending by the retry too"])
@played
async def test_a_window_made_shorter_does_not_drop_what_a_pending_key_names(tries: int) -> None:
    """A key is left pending, the queue's window is shortened, its message is delivered, acked and, without history,
    finished; the client tries again within the window that its key was written with.
    The naive engine kept the bucket for the new window only, had dropped it, and delivered the message again."""
    clock, store = new_world()
    failing, other = waylaid(store, clock, "change", refuse(commits_a_key)), server(store, clock)
    settings = QueueSettings(bucket_size=1, history_ms=0, dedup_window_ms=300_000, repair_timeout_ms=100)
    await failing.create_queue("shop", "jobs", settings)
    assert isinstance(await put_one(failing), OutcomeUnknown)
    await other.change_queue("shop", "jobs", {"dedup_window_ms": 1_000})
    clock.ms += 6_000  # the other server has heard of it
    if tries == 2:
        assert isinstance(await put_one(failing), OutcomeUnknown)
    await put_one(other, NewMessage(b"-"))
    received = await consume(other, clock, steps=600)
    assert await put_one(other) == NAMED
    received += await consume(other, clock, steps=100)
    assert bodies(received).count(b"message") == 1
    await consume(other, clock, steps=400, step_ms=1_000)
    assert (await other.marks("shop", "jobs"))[0].dropped >= 1


@pytest.mark.parametrize("window_ms", [300_000, 1_000], ids=["the same window", "a shorter window"])
@played
async def test_a_pending_key_whose_body_a_second_put_wrote_is_delivered_once(window_ms: int) -> None:
    """A put dies between its key and its body; a second one completes it, but cannot commit the key; the message is
    delivered, acked and, without history, finished; a third put comes.
    The naive engine kept the bucket by the second put's window, though the key lived by the first one's."""
    clock, store = new_world()
    first = waylaid(store, clock, "write", refuse(on(BODIES)))
    second, other = waylaid(store, clock, "change", refuse(commits_a_key)), server(store, clock)
    settings = QueueSettings(bucket_size=1, history_ms=0, dedup_window_ms=300_000, repair_timeout_ms=100)
    await first.create_queue("shop", "jobs", settings)
    assert isinstance(await put_one(first), AngelhairError)
    await other.change_queue("shop", "jobs", {"dedup_window_ms": window_ms})
    clock.ms += 6_000
    assert isinstance(await put_one(second), OutcomeUnknown)
    await put_one(other, NewMessage(b"-"))
    received = await consume(other, clock, steps=600)
    assert await put_one(other) == NAMED
    received += await consume(other, clock, steps=100)
    assert bodies(received).count(b"message") == 1


FIRST = NewMessage(b"first", "attributes of the first", 5_000, "key")
SECOND = NewMessage(b"second", None, 0, "key")


@pytest.mark.parametrize(("before", "after"), [(FIRST, SECOND), (SECOND, FIRST)])
@played
async def test_completing_a_pending_key_does_not_mix_two_messages(before: NewMessage, after: NewMessage) -> None:
    """Two different messages come with one key; the first left it pending, the second completes it.
    The naive engine wrote the second's columns over the first's, and those that only one of them had stayed."""
    clock, store = new_world()
    failing, other = waylaid(store, clock, "change", refuse(commits_a_key)), server(store, clock)
    await failing.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    assert isinstance(await put_one(failing, before), OutcomeUnknown)
    assert await put_one(other, after) == NAMED
    began_ms = clock.ms
    (delivery,) = await consume(other, clock, steps=100)
    assert (delivery.body, delivery.attributes) == (before.body, before.attributes)
    assert delivery.first_delivered_at_ms - began_ms >= (before.delay_ms or 0)


@pytest.mark.parametrize(("sleeping", "completing"), [(FIRST, SECOND), (SECOND, FIRST)])
@played
async def test_a_first_writer_that_wakes_late_does_not_mix_two_messages(
    sleeping: NewMessage, completing: NewMessage
) -> None:
    """The first put with a key sleeps before it writes its body; a second one, of another body, completes it; then
    the first wakes up and writes.
    The naive engine left columns that only one of the two had beside those of the other."""
    clock, store = new_world()
    halt = Halt(on(BODIES))
    slow, other = waylaid(store, clock, "write", halt), server(store, clock)
    await slow.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    putting = asyncio.create_task(put_one(slow, sleeping))
    await halt.reached.wait()
    confirmed = await put_one(other, completing)
    halt.wake.set()
    assert await putting == confirmed
    (delivery,) = await consume(other, clock, steps=100)
    whole = [(message.body, message.attributes) for message in (FIRST, SECOND)]
    assert (delivery.body, delivery.attributes) in whole


@played
async def test_an_answer_of_unknown_is_right_when_the_key_was_given_a_new_id() -> None:
    """A key is pending at an id whose bucket is purged; the next put moves it to a new id and the store fails there.
    The old id may have been delivered by a server that slept: the answer must not be a certain no."""
    clock, store = new_world()
    first = waylaid(store, clock, "write", refuse(on(BODIES)))
    other = server(store, clock)
    await first.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    assert isinstance(await put_one(first), Unavailable)
    await other.put("shop", "jobs", [NewMessage(b"-")])
    await other.purge("shop", "jobs")
    hooked = HookedStore(store)
    seen = 0

    async def fail_from_the_second_body_on(writes: Sequence[object]) -> list[Unavailable] | None:
        nonlocal seen
        seen += on(BODIES)(writes)
        return [Unavailable("no node") for _ in writes] if seen > 1 else None

    hooked.hooks["write"] = fail_from_the_second_body_on
    outcome = await put_one(server(hooked, clock))
    assert isinstance(outcome, OutcomeUnknown), outcome
    ((),) = await other.receive("shop", "jobs", [Ask(1)])


@played
async def test_a_put_that_completes_an_expired_message_is_not_confirmed_for_nothing() -> None:
    """A put writes its body and cannot say so; the message outlives its retention, unreceived; the client tries again,
    within the window of its key, and is confirmed.
    The naive engine left the message as it stood, expired: it was confirmed, and nobody could ever receive it."""
    clock, store = new_world()
    hooked = HookedStore(store)
    failing, other = server(hooked, clock), server(store, clock)
    await failing.create_queue("shop", "jobs", QueueSettings(bucket_size=10, retention_ms=10_000))
    await failing.reserve("shop", "jobs", 1)

    async def lose_the_marks(spans: Sequence[Span]) -> None:
        if on(POINTERS)(spans):
            raise Unavailable("no node")

    hooked.hooks["read"] = lose_the_marks
    assert isinstance(await put_one(failing), OutcomeUnknown)
    clock.ms += 20_000
    assert isinstance(await put_one(other), MessageId)
    assert bodies(await consume(other, clock, steps=50)) == [b"message"]


@played
async def test_a_plain_message_that_fails_does_not_deny_the_keyed_one_of_its_group() -> None:
    """One group holds a message with a key and a delayed one without; the store answers no more once the first was
    written. The naive engine told both that nothing had happened, and delivered the first all the same."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, SkewedClock(clock, 60_000))
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    written = False

    async def note(writes: Sequence[object]) -> None:
        nonlocal written
        written = written or on(BODIES)(writes)

    async def no_time() -> int:
        if written:
            raise Unavailable("no node")
        return clock.ms

    hooked.hooks["write"] = note
    hooked.time_ms = no_time  # type: ignore[method-assign]
    keyed, plain = await engine.put("shop", "jobs", [MESSAGE, NewMessage(b"later", delay_ms=1_000)])
    assert not isinstance(keyed, Unavailable)
    assert isinstance(plain, Unavailable)
    assert bodies(await consume(server(store, clock), clock, steps=50)) == [b"message"]
