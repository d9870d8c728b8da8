"""Attacks on single messages: confirmed and lost, answered wrongly, or hidden from everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from angelhair.engine.schema import BODIES, POINTERS, SEQUENCES, WAKES
from angelhair.engine.store import Span, Write
from angelhair.errors import StaleReceipt, Unavailable
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings, WantedChange
from tests.attacks.worlds import (
    HOUR_MS,
    Halt,
    HookedStore,
    LandsLate,
    bodies,
    consume,
    new_world,
    on,
    played,
    receive_one,
    refuse,
    server,
)


@played
async def test_an_old_receipt_beside_a_new_one_acks_nothing_of_the_new_incarnation() -> None:
    """A queue is deleted and made again; a server that has not heard acks an old receipt and a new one in one group.
    The naive engine grouped by lane alone, and the old receipt acked the new queue's message with the same id."""
    clock, store = new_world()
    unaware, aware = server(store, clock), server(store, clock)
    settings = QueueSettings(bucket_size=10)
    await unaware.create_queue("shop", "jobs", settings)
    await unaware.put("shop", "jobs", [NewMessage(b"old")])
    old = await receive_one(unaware)
    await aware.delete_queue("shop", "jobs")
    await aware.create_queue("shop", "jobs", settings)
    await aware.put("shop", "jobs", [NewMessage(b"new 0"), NewMessage(b"new 1")])
    await receive_one(aware)  # new 0: its consumer will crash
    working = await receive_one(aware)
    await unaware.ack("shop", "jobs", [old.receipt, working.receipt])
    clock.ms += 60_000
    assert bodies(await consume(aware, clock)) == [b"new 0"]


@played
async def test_a_final_flag_that_lands_after_the_drop_admits_nobody() -> None:
    """A late copy of repair's `final` flag lands on a dropped bucket while a putter sleeps before its admission.
    The naive engine took the bucket for a live one, confirmed the put, and never delivered it."""
    clock, store = new_world()
    other = server(store, clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=2, history_ms=0, repair_timeout_ms=100))
    await other.put("shop", "jobs", [NewMessage(b"0")])
    sleepy_store = HookedStore(store)
    before_body, before_admission = Halt(on(BODIES)), Halt(on(WAKES))

    async def fall_asleep_twice(items: Sequence[Write]) -> None:
        await before_body(items)
        await before_admission(items)

    sleepy_store.hooks["write"] = fall_asleep_twice
    putting = asyncio.create_task(server(sleepy_store, clock).put("shop", "jobs", [NewMessage(b"1")]))
    await before_body.reached.wait()

    worker_store = HookedStore(store)
    worker = server(worker_store, clock)
    late = LandsLate(lambda items: len(items) == 1 and items[0].set_flags.get("final") == 1)
    worker_store.hooks["change"] = late
    await other.put("shop", "jobs", [NewMessage(b"2")])
    states = worker.memory.lane(await worker.find_queue("shop", "jobs"), 0).states(0)
    received: list[Delivery] = []
    for _ in range(200):
        (deliveries,) = await worker.receive("shop", "jobs", [Ask(10)])
        received += deliveries
        if deliveries:
            await worker.ack("shop", "jobs", [delivery.receipt for delivery in deliveries])
        marks = (await worker.marks("shop", "jobs"))[0]
        if marks.repair >= 1 or marks.floor:
            break
        await worker.step("shop", "jobs")
        (found,) = await store.read([Span(states)])
        if found.flags.get("finished"):
            break
        clock.ms += 100
    assert late.items and marks.floor == 0, marks

    before_body.wake.set()  # the body goes into the finished bucket, whose marks still say final and not dropped
    await before_admission.reached.wait()
    for _ in range(50):
        await worker.step("shop", "jobs")
        clock.ms += 1_000
    assert (await worker.marks("shop", "jobs"))[0].dropped == 1
    await store.change(late.items)  # it expects `final` unset, and a dropped bucket has no flags
    before_admission.wake.set()
    (outcome,) = await putting
    received += await consume(worker, clock, steps=1_000, step_ms=500)
    assert not isinstance(outcome, MessageId) or b"1" in bodies(received)


@played
async def test_unavailable_is_never_said_of_a_message_that_was_delivered() -> None:
    """A putter sleeps after its body write until the message is delivered, acked and dropped; then the store fails.
    The naive engine could not write a second copy and answered `Unavailable`, as if nothing had happened."""
    clock, store = new_world()
    sleepy_store = HookedStore(store)
    sleepy, other = server(sleepy_store, clock), server(store, clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=1, history_ms=0, repair_timeout_ms=100))
    await sleepy.put("shop", "jobs", [NewMessage(b"first")])
    halt = Halt(lambda items: not halt.reached.is_set() and len(items) == 1 and on(POINTERS)(items))
    sleepy_store.hooks["read"] = halt
    putting = asyncio.create_task(sleepy.put("shop", "jobs", [NewMessage(b"message")]))
    await halt.reached.wait()
    await other.put("shop", "jobs", [NewMessage(b"last")])
    received = await consume(other, clock)
    assert (await other.marks("shop", "jobs"))[0].dropped >= 2
    sleepy_store.hooks["write"] = refuse(lambda items: True)
    halt.wake.set()
    (outcome,) = await putting
    assert not (isinstance(outcome, Unavailable) and b"message" in bodies(received))


@played
async def test_a_group_that_fails_late_does_not_deny_its_half_that_was_put() -> None:
    """Two keyed messages go in one group; the second needs a new id, and the sequence is away.
    The naive engine raised `Unavailable` for the whole group, although the first message was put."""
    clock, store = new_world()
    failing_store = HookedStore(store)
    failing, other = server(failing_store, clock), server(store, clock)
    await failing.create_queue("shop", "jobs", QueueSettings(bucket_size=1, history_ms=0, repair_timeout_ms=100))
    failing_store.hooks["write"] = refuse(on(BODIES))
    (outcome,) = await failing.put("shop", "jobs", [NewMessage(b"second", key="second")])
    assert isinstance(outcome, Unavailable)  # the key stays pending at id 0
    failing_store.hooks.clear()
    await other.put("shop", "jobs", [NewMessage(b"-")])
    received = await consume(other, clock, steps=200)
    assert (await other.marks("shop", "jobs"))[0].dropped >= 1
    reservation = await failing.reserve("shop", "jobs", 2)
    failing_store.hooks["change"] = refuse(on(SEQUENCES))
    messages = [NewMessage(b"first", key="first"), NewMessage(b"second", key="second")]
    try:
        outcomes = await failing.put_reserved(reservation, messages)
    except Unavailable as error:
        outcomes = [error, error]
    failing_store.hooks.clear()
    received += await consume(other, clock, steps=200)
    assert not (isinstance(outcomes[0], Unavailable) and b"first" in bodies(received))


@played
async def test_a_store_that_does_not_tell_the_time_does_not_deny_what_was_put() -> None:
    """A keyed message and a delayed one go in one group, and the store does not answer what time it is.
    The naive engine raised `Unavailable` for both, although the keyed one was put."""

    class TimelessStore(HookedStore):
        async def time_ms(self) -> int:
            raise Unavailable("no node")

    clock, store = new_world()
    timeless, other = server(TimelessStore(store), clock), server(store, clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    messages = [NewMessage(b"keyed", key="key"), NewMessage(b"later", delay_ms=1_000)]
    try:
        outcomes = await timeless.put("shop", "jobs", messages)
    except Unavailable as error:
        outcomes = [error, error]
    received = await consume(other, clock)
    assert not (isinstance(outcomes[0], Unavailable) and b"keyed" in bodies(received))


@played
async def test_a_receive_that_is_cancelled_before_its_claim_hides_nothing() -> None:
    """A consumer hangs up while its server writes the wake row that precedes the claim.
    The naive engine went on taking the message for claimed, and this server never offered it again."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    await engine.put("shop", "jobs", [NewMessage(b"message")])
    halt = Halt(on(WAKES))
    hooked.hooks["write"] = halt
    receiving = asyncio.create_task(engine.receive("shop", "jobs", [Ask(1)]))
    await halt.reached.wait()
    receiving.cancel()
    await asyncio.gather(receiving, return_exceptions=True)
    hooked.hooks.clear()
    assert bodies(await consume(engine, clock, steps=8_000, step_ms=1_000)) == [b"message"]


@played
async def test_a_receive_that_is_cancelled_while_it_reads_hides_nothing() -> None:
    """A consumer hangs up while its server reads the bodies that fill a gap.
    The naive engine had already noted them as read, and never read them again."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    reservation = await engine.reserve("shop", "jobs", 1)  # id 0 is on its way: the reader sees a gap
    await engine.put("shop", "jobs", [NewMessage(b"1")])
    await engine.receive("shop", "jobs", [Ask(1, 24 * HOUR_MS)])
    await engine.put_reserved(reservation, [NewMessage(b"0")])
    clock.ms += 1_000
    halt = Halt(on(BODIES))
    hooked.hooks["read"] = halt
    receiving = asyncio.create_task(engine.receive("shop", "jobs", [Ask(1)]))
    await halt.reached.wait()
    receiving.cancel()
    await asyncio.gather(receiving, return_exceptions=True)
    hooked.hooks.clear()
    assert bodies(await consume(engine, clock, steps=8_000, step_ms=1_000)) == [b"0"]


@played
async def test_peek_shows_the_empty_body_that_replaced_another() -> None:
    """A consumer replaces a body by an empty one. The naive engine took empty for absent and showed the old body."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings())
    await engine.put("shop", "jobs", [NewMessage(b"secret")])
    delivery = await receive_one(engine)
    assert await engine.change("shop", "jobs", [WantedChange(delivery.receipt, 0, b"")]) == [None]
    (peeked,) = await engine.peek("shop", "jobs", 1)
    assert peeked.body == b""


@played
async def test_thirty_receipts_of_one_message_in_one_group_are_told_apart() -> None:
    """One group acks a message with the receipts of all its thirty deliveries, the newest last.
    The naive engine settled one of them in each round, and had no rounds left for the others."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=100, visibility_timeout_ms=100))
    await engine.put("shop", "jobs", [NewMessage(b"message")])
    received: list[Delivery] = []
    while len(received) < 30:
        (deliveries,) = await engine.receive("shop", "jobs", [Ask(1)])
        received += deliveries
        clock.ms += 200
    outcomes = await engine.ack("shop", "jobs", [delivery.receipt for delivery in received])
    assert outcomes[-1] is None
    assert all(isinstance(outcome, StaleReceipt) for outcome in outcomes[:-1])
