"""A1: a message whose put was confirmed is delivered again and again until it is acked, expires or is moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from angelhair.engine.schema import BODIES, POINTERS, STATES
from angelhair.engine.store import Write
from angelhair.errors import OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import HOUR, MINUTE, SECOND, World, numbers


async def test_a01_delivered_again_until_acked(world: World) -> None:
    """Naive: delete on delivery, or stop after some deliveries."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders", b"again")
    for delivery_number in range(1, 8):
        (delivery,) = await server.receive("orders")
        assert (delivery.deliveries, delivery.body) == (delivery_number, b"again")
        assert await server.receive("orders") == []
        world.wait(11 * SECOND)
    (delivery,) = await server.receive("orders")
    assert await server.ack("orders", delivery) == [None]
    world.wait(HOUR)
    assert await server.receive("orders") == []


async def test_a01_server_dies_with_messages_in_hand(world: World) -> None:
    """Naive: redelivery from the memory of the server that delivered. Another one must find them."""
    first = world.server()
    await first.create("orders", bucket_size=4, visibility_timeout_ms=10 * SECOND)
    put = await first.put("orders", count=10)
    assert numbers(await first.receive("orders", 7)) == put[:7]
    world.wait(11 * SECOND)
    second = world.server()
    got = []
    while found := await second.take("orders", 10):
        got += numbers(found)
        world.wait(2 * SECOND)
    assert sorted(got) == put


async def test_a01_server_dies_between_claim_and_answer(world: World) -> None:
    """Naive: count a claim as a delivery for good. The claim landed, nobody got the message; it comes back."""
    first, second = world.server(), world.server()
    await first.create("orders", visibility_timeout_ms=10 * SECOND)
    await first.put("orders")
    await first.receive("orders", 1, 0)
    world.wait(SECOND)
    first.store.next("read", BODIES, UNAVAILABLE, times=100)
    first.store.next("change", STATES, LOSE_ANSWER, times=100)
    with pytest.raises((OutcomeUnknown, Unavailable)):
        await first.receive("orders")
    world.wait(12 * SECOND)
    assert numbers(await second.receive("orders")) == [0]


async def test_a01_bodies_cannot_be_read_after_the_claim(world: World) -> None:
    """The messages were claimed and could not be handed out: an error, and they are back after their time-out."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders", b"a", b"b")
    await server.receive("orders", 2)
    world.wait(11 * SECOND)
    # The examination reads states and bodies in one call; the bodies of what was claimed are read alone, afterwards.
    server.store.next("read", BODIES, UNAVAILABLE, when=lambda span: span.columns is None)
    with pytest.raises(Unavailable):
        await server.receive("orders", 2)
    assert await server.receive("orders", 2) == []
    world.wait(11 * SECOND)
    assert [(item.body, item.deliveries) for item in await server.receive("orders", 2)] == [(b"a", 3), (b"b", 3)]


async def test_a01_unavailable_put_is_never_delivered(world: World) -> None:
    """Naive: one kind of error for "did not happen" and "may have happened"."""
    server = world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=10 * SECOND)
    server.store.next("write", BODIES, UNAVAILABLE, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"never")])
    assert type(outcome) is Unavailable
    server.store.heal()
    await server.put("orders", b"later", b"later")
    assert [item.body for item in await server.drain("orders")] == [b"later", b"later"]
    await server.work("orders", 30 * SECOND)
    assert await server.drain("orders") == []


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT])
async def test_a01_put_of_unknown_outcome_says_so(world: World, fault: str) -> None:
    """Naive: report a time-out as a failure. It may be delivered, so it is never called `Unavailable`."""
    server = world.server()
    await server.create("orders")
    server.store.next("write", BODIES, fault, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"perhaps")])
    assert type(outcome) is OutcomeUnknown
    server.store.heal()
    world.wait(SECOND)
    assert len(await server.drain("orders")) == (1 if fault == LOSE_ANSWER else 0)


async def test_a01_unknown_then_unavailable_is_unknown(world: World) -> None:
    """Naive: report the last error only. The first try may have landed."""
    server = world.server()
    await server.create("orders")
    server.store.next("write", BODIES, LOSE_ANSWER)
    server.store.next("write", BODIES, UNAVAILABLE, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"perhaps")])
    assert type(outcome) is OutcomeUnknown
    assert [item.body for item in await server.drain("orders")] == [b"perhaps"]


async def test_a01_one_bad_bucket_concerns_its_messages_only(world: World) -> None:
    """Naive: fail the whole group. What was written elsewhere is confirmed, and each message has its own answer."""
    server = world.server()
    await server.create("orders", bucket_size=2)
    server.store.next("write", BODIES, UNAVAILABLE, when=in_bucket(1), times=100)
    outcomes = await server.put_outcomes("orders", [NewMessage(b"-")] * 6)
    assert [type(item) for item in outcomes] == [MessageId, MessageId, Unavailable, Unavailable, MessageId, MessageId]
    server.store.heal()
    assert numbers(await server.drain("orders")) == [0, 1, 4, 5]


def in_bucket(bucket: int) -> Callable[[Write], bool]:
    return lambda write: write.partition.key.endswith(f".{bucket}")


async def test_a01_confirmation_waits_for_the_marks(world: World) -> None:
    """Naive: confirm after the write. Without the marks nobody knows whether repair will still read the bucket."""
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    server.store.next("read", POINTERS, UNAVAILABLE, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-")])
    assert type(outcome) is OutcomeUnknown
    server.store.heal()
    server.store.next("read", POINTERS, UNAVAILABLE, times=2)
    assert await server.put("orders") == [2]


async def test_a01_missing_dead_letter_queue_loses_nothing(world: World) -> None:
    """Naive: hold exhausted messages back until their dead-letter queue appears. They are delivered on instead."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=SECOND, max_deliveries=2, dead_letter_queue="nowhere")
    await server.put("orders", b"poison")
    deliveries = []
    for _ in range(8):
        deliveries += [item.deliveries for item in await server.receive("orders")]
        world.wait(2 * SECOND)
        await server.step("orders")
    assert deliveries[:4] == [1, 2, 3, 4]


async def test_a01_dead_letter_queue_that_is_made_later_gets_its_letters(world: World) -> None:
    """Naive: remember for ever that it was missing (R4)."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue="nowhere")
    await server.put("orders", b"poison")
    for _ in range(3):
        await server.receive("orders")
        world.wait(2 * SECOND)
        await server.step("orders")
    await server.create("nowhere")
    for _ in range(8):
        await server.receive("orders")
        world.wait(6 * SECOND)
        await server.step("orders")
    assert [item.body for item in await server.receive("nowhere")] == [b"poison"]


async def test_a01_expires_by_its_retention_and_not_before(world: World) -> None:
    """Naive: expire by whatever the own clock says (R5), or never."""
    server = world.server()
    await server.create("orders", bucket_size=2, retention_ms=HOUR, repair_timeout_ms=10 * SECOND, history_ms=0)
    await server.put("orders", count=4)
    world.wait(59 * MINUTE)
    await server.step("orders")
    assert numbers(await server.receive("orders", 1, 0)) == [0]
    world.wait(2 * MINUTE)
    await server.step("orders")
    assert await server.receive("orders", 10) == []
    await server.work("orders", 3 * MINUTE, every_ms=5 * SECOND)
    assert (await world.marks("orders")).dropped == 2


async def test_a01_queue_that_nobody_reads_still_expires(world: World) -> None:
    """Naive: expire while reading. A queue without consumers must not keep everything for ever."""
    server = world.server()
    await server.create("orders", bucket_size=2, retention_ms=HOUR, repair_timeout_ms=10 * SECOND, history_ms=0)
    await server.put("orders", count=6)
    await server.work("orders", 50 * MINUTE, every_ms=5 * MINUTE)
    assert (await world.marks("orders")).reader == 0
    await server.work("orders", 20 * MINUTE, every_ms=20 * SECOND)
    assert (await world.marks("orders")).dropped == 3


async def test_a01_clock_ahead_expires_nothing(world: World) -> None:
    """Naive: trust the own clock. A server a day ahead would throw a day of messages away."""
    good, fast = world.server(), world.server(ahead_ms=24 * HOUR)
    await good.create("orders", bucket_size=2, retention_ms=HOUR, repair_timeout_ms=SECOND, history_ms=0)
    await good.put("orders", count=4)
    await fast.work("orders", MINUTE, every_ms=5 * SECOND)
    assert numbers(await good.receive("orders", 10)) == [0, 1, 2, 3]


async def test_a01_put_into_a_deleted_queue_is_an_error(world: World) -> None:
    """Naive: write into the void of a queue that is gone, and confirm."""
    stale, other = world.server(), world.server()
    await stale.create("orders")
    await stale.put("orders")
    await other.engine.delete_queue(world.account, "orders")
    with pytest.raises(QueueNotFound):
        await stale.put("orders")
    with pytest.raises(QueueNotFound):
        await stale.receive("orders")
