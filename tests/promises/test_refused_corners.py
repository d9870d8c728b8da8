"""What is asked for rarely, or by mistake: each has one right answer."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from angelhair.engine.packed import LENGTH_BITS, Packed
from angelhair.errors import InvalidReceipt, InvalidRequest
from tests.queues import SECOND, World, numbers


async def test_a03_an_ack_only_in_flight_is_no_matter_of_bucketed_queues(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    with pytest.raises(InvalidRequest, match="not delivered again since"):
        await server.engine.ack(world.account, "orders", [delivery.receipt], in_flight=True)
    assert await server.ack("orders", delivery) == [None]


async def test_a03_a_receipt_of_another_version_says_so(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    raw = bytearray(urlsafe_b64decode(delivery.receipt))
    raw[0] += 1
    (outcome,) = await server.engine.ack(world.account, "orders", [urlsafe_b64encode(raw).decode()])
    assert isinstance(outcome, InvalidReceipt)
    assert "another version" in str(outcome)
    assert await server.ack("orders", delivery) == [None]


async def test_a_peek_that_has_enough_leaves_the_other_lanes_alone(world: World) -> None:
    server = world.server()
    await server.create("orders", lanes=2)
    await server.put("orders", count=2)
    await server.put("orders", count=2)
    assert len(await server.engine.peek(world.account, "orders", 1)) == 1
    assert len(await server.engine.peek(world.account, "orders", 4)) == 4


async def test_a01_a_dead_letter_queue_that_is_taken_away_while_a_message_dies(world: World) -> None:
    server = world.server()
    await server.create("dead")
    await server.create("orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND)
    await server.put("orders")
    assert numbers(await server.receive("orders")) == [0]
    world.wait(SECOND)
    assert await server.receive("orders") == []
    await server.engine.change_queue(world.account, "orders", {"dead_letter_queue": None, "max_deliveries": None})
    await server.work("orders", 2 * SECOND)
    assert numbers(await server.receive("orders")) == [0]
    assert await server.receive("dead") == []


def test_a_part_of_packed_blobs_has_all_between_its_ends() -> None:
    pieces = memoryview(bytearray(3 * 8)).cast("q")
    for index in range(3):
        pieces[index] = index << LENGTH_BITS | 1
    packed = Packed(memoryview(b"abc"), pieces, 1)
    assert list(packed[1:]) == [b"b", b"c"]
    for step in (2, -1):
        with pytest.raises(ValueError, match="all that lie between"):
            packed[::step]
