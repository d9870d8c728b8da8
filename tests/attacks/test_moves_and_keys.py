"""Attacks on messages that change queues, and on messages with an idempotency key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from angelhair.engine.schema import BODIES, KEYS, STATES
from angelhair.engine.store import Change
from angelhair.errors import OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import (
    DAY_MS,
    HookedStore,
    LandsLate,
    bodies,
    consume,
    die,
    new_world,
    on,
    played,
    refuse,
    server,
)


def one_try(bucket_size: int = 10, visibility_timeout_ms: int = 100) -> QueueSettings:
    """A queue whose messages are dead after one delivery."""
    return QueueSettings(
        bucket_size=bucket_size, dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=visibility_timeout_ms
    )


@played
async def test_a_put_that_finds_its_key_pending_is_not_purged_by_an_earlier_purge() -> None:
    """A keyed put fails before its body is written; the queue is purged; the client tries again and is confirmed.
    The naive engine put the message at the pending id, which lies below the purge, and never delivered it."""
    clock, store = new_world()
    failing_store = HookedStore(store)
    failing, other = server(failing_store, clock), server(store, clock)
    await failing.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    failing_store.hooks["write"] = refuse(on(BODIES))
    (refused,) = await failing.put("shop", "jobs", [NewMessage(b"message", key="key")])
    assert isinstance(refused, Unavailable)
    await other.purge("shop", "jobs")
    (confirmed,) = await other.put("shop", "jobs", [NewMessage(b"message", key="key")])
    assert isinstance(confirmed, MessageId)
    assert bodies(await consume(other, clock, steps=2_000, step_ms=1_000)) == [b"message"]


@played
async def test_a_key_that_lands_late_does_not_swallow_a_new_message() -> None:
    """A copy of a key's row lands five windows after the put that wrote it; then a new message has the same key.
    The naive engine took the new message for a copy of the old one, confirmed it, and delivered nothing."""
    clock, store = new_world()
    hooked = HookedStore(store)
    first, second = server(hooked, clock), server(store, clock)
    await first.create_queue("shop", "jobs", QueueSettings(bucket_size=10, dedup_window_ms=1_000))
    late = LandsLate(on(KEYS))
    hooked.hooks["change"] = late
    await first.put("shop", "jobs", [NewMessage(b"old", key="key")])
    received = await consume(first, clock, steps=50)
    await store.change(late.items)
    (outcome,) = await second.put("shop", "jobs", [NewMessage(b"new", key="key")])
    assert isinstance(outcome, MessageId)
    received += await consume(second, clock, steps=4_000, step_ms=1_000)
    assert bodies(received) == [b"old", b"new"]


@played
async def test_a_key_left_pending_is_delivered_once_even_without_history() -> None:
    """A put is in the queue though its key could not be committed; it is delivered and acked; the client puts again.
    The naive engine had dropped the bucket by then, could not tell, and delivered the message a second time."""

    def commits_a_key(changes: Sequence[Change]) -> bool:
        return on(KEYS)(changes) and (changes[0].rows[0].values or {}).get("status") == "committed"

    clock, store = new_world()
    failing_store = HookedStore(store)
    failing, other = server(failing_store, clock), server(store, clock)
    settings = QueueSettings(bucket_size=1, history_ms=0, dedup_window_ms=300_000, repair_timeout_ms=100)
    await failing.create_queue("shop", "jobs", settings)
    failing_store.hooks["change"] = refuse(commits_a_key)
    (unknown,) = await failing.put("shop", "jobs", [NewMessage(b"message", key="key")])
    assert isinstance(unknown, OutcomeUnknown)
    await failing.put("shop", "jobs", [NewMessage(b"-")])
    received = await consume(other, clock, steps=300)
    assert (await other.marks("shop", "jobs"))[0].settled >= 1
    assert await other.put("shop", "jobs", [NewMessage(b"message", key="key")]) == [MessageId(0, 0)]
    received += await consume(other, clock, steps=100)
    assert bodies(received).count(b"message") == 1
    # Once the window is over the bucket goes, as the others did.
    await consume(other, clock, steps=400, step_ms=1_000)
    assert (await other.marks("shop", "jobs"))[0].dropped >= 1


@played
async def test_a_move_that_is_resumed_late_arrives_once_where_history_outlasts_it() -> None:
    """A mover dies between writing the target and settling the source; the copy is delivered and acked meanwhile.
    Without history its bucket would be gone by then, and the message moved again: see docs/known-limits.md."""

    def settles_a_move(changes: Sequence[Change]) -> bool:
        return on(STATES)(changes) and any(
            (row.values or {}).get("settled") == "moved" for change in changes for row in change.rows
        )

    clock, store = new_world()
    dying_store = HookedStore(store)
    dying, other = server(dying_store, clock), server(store, clock)
    settings = QueueSettings(bucket_size=1, history_ms=600_000, repair_timeout_ms=100)
    await dying.create_queue("shop", "other", settings)
    await dying.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    await dying.put("shop", "jobs", [NewMessage(b"message")])
    dying_store.hooks["change"] = die(settles_a_move)
    with pytest.raises(asyncio.CancelledError):
        await dying.redrive("shop", "jobs", "other", 1)
    received = await consume(other, clock, "other", steps=100)
    await other.put("shop", "other", [NewMessage(b"-")])
    received += await consume(other, clock, "other", steps=100)
    assert (await other.marks("shop", "other"))[0].settled >= 1
    for _ in range(200):
        clock.ms += 1_000
        await other.receive("shop", "jobs", [Ask(1)])
        await other.step("shop", "jobs")
    received += await consume(other, clock, "other", steps=100)
    assert bodies(received).count(b"message") == 1


@played
async def test_a_move_that_is_resumed_after_a_purge_of_its_target_arrives() -> None:
    """A server dies between marking a message as moving and writing it; its empty target is purged meanwhile.
    The naive engine resumed at the reserved id, which lies below the purge, and the message was in neither queue."""
    clock, store = new_world()
    dying_store = HookedStore(store)
    dying, other = server(dying_store, clock), server(store, clock)
    await dying.create_queue("shop", "dead", QueueSettings(bucket_size=10))
    await dying.create_queue("shop", "jobs", one_try(visibility_timeout_ms=1_000))
    await dying.put("shop", "jobs", [NewMessage(b"message")])
    await dying.receive("shop", "jobs", [Ask(1)])
    dying_store.hooks["write"] = die(on(BODIES))

    async def work_until_death() -> None:
        for _ in range(10):
            clock.ms += 500
            await dying.receive("shop", "jobs", [Ask(1)])
            await dying.step("shop", "jobs")

    with pytest.raises(asyncio.CancelledError):
        await work_until_death()
    assert (await other.stats("shop", "dead")).visible == 0
    assert (await other.stats("shop", "jobs")).in_flight == 1
    await other.purge("shop", "dead")
    for _ in range(400):
        clock.ms += 1_000
        await other.receive("shop", "jobs", [Ask(1)])
        await other.step("shop", "jobs")
    received = await consume(other, clock, "dead") + await consume(other, clock, "jobs")
    assert bodies(received) == [b"message"]


@played
async def test_a_dead_letter_queue_that_is_made_later_is_used() -> None:
    """A message has used up its deliveries before its dead-letter queue exists.
    The naive engine went on delivering it for ever, and never moved it once there was somewhere to go."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", one_try(visibility_timeout_ms=1_000))
    await engine.put("shop", "jobs", [NewMessage(b"message")])
    await consume(engine, clock, steps=60, ack=False)  # nowhere to go: it is delivered on
    await engine.create_queue("shop", "dead", QueueSettings())
    await consume(engine, clock, steps=3_000, step_ms=1_000, ack=False)
    assert (await engine.stats("shop", "dead")).visible == 1


@played
async def test_a_purged_message_does_not_go_to_the_dead_letters() -> None:
    """A message has used up its deliveries when its queue is purged; then background work comes by.
    The naive engine moved it to the dead-letter queue, from where it could come back."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "dead", QueueSettings(bucket_size=100))
    await engine.create_queue("shop", "jobs", one_try(bucket_size=100))
    await engine.put("shop", "jobs", [NewMessage(b"message")])
    await engine.receive("shop", "jobs", [Ask(1)])
    clock.ms += 1_000
    await engine.receive("shop", "jobs", [Ask(1)])
    await engine.purge("shop", "jobs")
    for _ in range(20):
        clock.ms += 1_000
        await engine.step("shop", "jobs")
    assert (await engine.stats("shop", "dead")).visible == 0


@played
async def test_redrive_passes_a_message_whose_queue_is_gone() -> None:
    """Two queues share a dead-letter queue, and the one whose message comes first is deleted.
    The naive engine raised `QueueNotFound` at that message each time, and the others never went back."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "dead", QueueSettings(bucket_size=10))
    for name in ("gone", "here"):
        await engine.create_queue("shop", name, one_try())
        await engine.put("shop", name, [NewMessage(name.encode())])
        await consume(engine, clock, name, steps=30, ack=False)
    assert (await engine.stats("shop", "dead")).visible == 2
    await engine.delete_queue("shop", "gone")
    moved = 0
    for _ in range(5):
        clock.ms += 10_000
        try:
            moved += await engine.redrive("shop", "dead", None, 100)
        except QueueNotFound:
            pass
    assert moved == 1


@played
async def test_redrive_passes_messages_without_an_origin() -> None:
    """Messages that were put into a dead-letter queue by hand lie before one that was moved there.
    The naive engine looked at as many messages as it was asked to move, and so only ever at those."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "dead", QueueSettings(bucket_size=10))
    await engine.put("shop", "dead", [NewMessage(b"put here by hand")] * 3)
    await engine.create_queue("shop", "jobs", one_try())
    await engine.put("shop", "jobs", [NewMessage(b"message")])
    await consume(engine, clock, steps=30, ack=False)
    assert (await engine.stats("shop", "dead")).visible == 4
    moved = 0
    for _ in range(90):
        moved += await engine.redrive("shop", "dead", None, 3)
        clock.ms += 1_000
    assert moved == 1


@played
async def test_redrive_and_peek_pass_finished_buckets() -> None:
    """A message hidden for a year holds the floor, and eighty finished buckets lie between it and a visible one.
    The naive engine began at the floor each time, and its bounded look never got past the finished buckets."""
    clock, store = new_world()
    worker = server(store, clock)
    await worker.create_queue("shop", "other", QueueSettings())
    await worker.create_queue("shop", "jobs", QueueSettings(bucket_size=1, repair_timeout_ms=100))
    await worker.put("shop", "jobs", [NewMessage(b"later")])
    assert await worker.receive("shop", "jobs", [Ask(1, 365 * DAY_MS)]) != [[]]
    await worker.put("shop", "jobs", [NewMessage(b"-")] * 80)
    await consume(worker, clock, steps=300)
    await worker.put("shop", "jobs", [NewMessage(b"message")])
    without_lease = server(store, clock)
    peeked = [await without_lease.peek("shop", "jobs", 10) for _ in range(20)]
    moved = [await without_lease.redrive("shop", "jobs", "other", 10) for _ in range(20)]
    assert sum(moved) == 1
    assert any(peeked)


@pytest.mark.parametrize("mover_dies", [True, False], ids=["the mover dies", "the store is away for a moment"])
@played
async def test_a_redrive_that_stops_half_way_is_resumed(mover_dies: bool) -> None:
    """A redrive stops before its body write, in a dead-letter queue that nobody receives from.
    The naive engine had that open bucket in no index, nobody looked, and the message stayed moving for ever."""
    clock, store = new_world()
    hooked = HookedStore(store)
    mover = server(hooked, clock)
    await mover.create_queue("shop", "dead", QueueSettings(bucket_size=100))
    await mover.create_queue("shop", "jobs", one_try(bucket_size=100))
    await mover.put("shop", "jobs", [NewMessage(b"message")])
    await consume(mover, clock, steps=30, ack=False)
    assert (await mover.stats("shop", "dead")).visible == 1
    hooked.hooks["write"] = (die if mover_dies else refuse)(on(BODIES))
    try:
        await mover.redrive("shop", "dead", None, 10)
    except asyncio.CancelledError:
        assert mover_dies
    hooked.hooks.clear()
    survivor = server(store, clock) if mover_dies else mover
    received: list[Delivery] = []
    for _ in range(4_000):  # four hours, and everything is calm
        clock.ms += 3_600
        await survivor.step("shop", "dead")
        await survivor.step("shop", "jobs")
        (deliveries,) = await survivor.receive("shop", "jobs", [Ask(1, 60_000)])
        received += deliveries
        if deliveries:
            await survivor.ack("shop", "jobs", [deliveries[0].receipt])
    assert bodies(received) == [b"message"]
