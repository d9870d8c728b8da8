"""Fifo queues: a put, or a move, that is decided and seen in part (row 19 of docs/cassandra.md)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.schema import LOGS
from angelhair.model import FIFO, Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.half_committed import HalfCommitted
from tests.attacks.minority import dates, never
from tests.attacks.worlds import bodies, consume, new_world, played, server

SECOND = 1_000
MINUTE = 60 * SECOND


def message(text: bytes, key: str = "k") -> NewMessage:
    return NewMessage(text, '{"unit":"cents"}', key=key, group="g")


def putting(change: object) -> bool:
    return bool(getattr(change, "rows", ()))


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_fifo_queue_gives_no_empty_message(near: bool) -> None:
    """Its order is read without bodies. What is seen of a put in part was claimed, and given without body and
    attributes; it was acked, and then its put was confirmed."""
    clock, store = new_world()
    half = HalfCommitted(store, LOGS, putting)
    half.lands = asyncio.Event()
    putter, other = server(half.writer(), clock), server(half.seen(), clock)
    await other.create_queue("shop", "jobs", QueueSettings(kind=FIFO, visibility_timeout_ms=SECOND))
    slow = asyncio.create_task(putter.put("shop", "jobs", [message(b"slow")]))
    await half.reached.wait()
    if near:
        half.near = dates
    got = await consume(other, clock, steps=20)
    half.lands.set()
    (confirmed,) = await slow
    assert isinstance(confirmed, MessageId), confirmed
    got += await consume(other, clock, steps=40)
    assert [(each.body, each.attributes) for each in got] == [(b"slow", '{"unit":"cents"}')]


@played
async def test_a_redrive_of_a_fifo_queue_moves_no_empty_message() -> None:
    """What is seen in part was moved without its body."""
    clock, store = new_world()
    half = HalfCommitted(store, LOGS, putting)
    half.lands = asyncio.Event()
    putter, other = server(half.writer(), clock), server(half.seen(), clock)
    await other.create_queue("shop", "jobs", QueueSettings(kind=FIFO))
    await other.create_queue("shop", "new", QueueSettings(kind=FIFO))
    slow = asyncio.create_task(putter.put("shop", "jobs", [message(b"slow")]))
    await half.reached.wait()
    half.near = dates
    await other.redrive("shop", "jobs", "new", 10)
    half.lands.set()
    (confirmed,) = await slow
    assert isinstance(confirmed, MessageId), confirmed
    got = bodies(await consume(other, clock, steps=20)) + bodies(await consume(other, clock, "new", steps=20))
    assert got == [b"slow"]


@played
async def test_a_peek_into_a_fifo_queue_shows_no_empty_message() -> None:
    clock, store = new_world()
    half = HalfCommitted(store, LOGS, putting)
    half.lands = asyncio.Event()
    putter, other = server(half.writer(), clock), server(half.seen(), clock)
    await other.create_queue("shop", "jobs", QueueSettings(kind=FIFO))
    slow = asyncio.create_task(putter.put("shop", "jobs", [message(b"slow")]))
    await half.reached.wait()
    half.near = dates
    assert {each.body for each in await other.peek("shop", "jobs", 10)} <= {b"slow"}
    half.lands.set()
    await slow


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_key_whose_put_is_seen_in_part_is_put_once(near: bool) -> None:
    """A receive asks for groups and dates alone. Who looks for keys then finds a row without one, and puts it again."""
    clock, store = new_world()
    half = HalfCommitted(store, LOGS, putting)
    putter, receiver, other = (server(way, clock) for way in (half.writer(), half.seen(), half.seen()))
    await receiver.create_queue("shop", "jobs", QueueSettings(kind=FIFO, dedup_window_ms=5 * MINUTE))
    with pytest.raises(asyncio.CancelledError):
        await putter.put("shop", "jobs", [message(b"once")])
    if near:
        half.near = dates
    await receiver.stats("shop", "jobs")
    await receiver.receive("shop", "jobs", [Ask(1, 0)])
    half.near = never
    (confirmed,) = await other.put("shop", "jobs", [message(b"once")])
    assert isinstance(confirmed, MessageId), confirmed
    assert bodies(await consume(other, clock, steps=400)) == [b"once"]


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_move_that_has_arrived_and_is_seen_in_part_arrives_once(near: bool) -> None:
    """Who moves it dies when it is there. Who goes on looks for its origin there, which a receive had not asked for."""
    clock, store = new_world()
    half = HalfCommitted(store, LOGS, lambda change: any((row.values or {}).get("origin") for row in change.rows))
    mover, receiver, other = (server(way, clock) for way in (half.writer(), half.seen(), half.seen()))
    await other.create_queue("shop", "dead", QueueSettings(kind=FIFO))
    settings = QueueSettings(kind=FIFO, dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=SECOND)
    await other.create_queue("shop", "jobs", settings)
    await other.put("shop", "jobs", [message(b"poison")])
    ((given,),) = await mover.receive("shop", "jobs", [Ask(1)])
    assert given.body == b"poison"

    async def work() -> None:
        for _ in range(100):
            clock.ms += 100
            await mover.receive("shop", "jobs", [Ask(1)])
            await mover.step("shop", "jobs")

    with pytest.raises(asyncio.CancelledError):
        await work()
    if near:
        half.near = dates
    await receiver.receive("shop", "dead", [Ask(1, 0)])
    half.near = never
    assert await consume(other, clock, steps=600) == []
    assert bodies(await consume(other, clock, "dead", steps=100)) == [b"poison"]
