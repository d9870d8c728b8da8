"""Attacks on who is served of a databag: messages that lie behind others which nobody deletes."""

from __future__ import annotations

from collections import Counter

import pytest

from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import cut
from angelhair.engine.engine import Engine
from angelhair.engine.members import Holdings, Presence
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import DAY_MS, HOUR_MS, SteppedClock, new_world, played, server

SECOND_MS = 1_000
POISON = b"poison"


async def create(engine: Engine, **settings: int) -> None:
    await engine.create_queue("shop", "bag", QueueSettings(kind=DATABAG, **settings))  # type: ignore[arg-type]


async def put(engine: Engine, body: bytes) -> MessageId:
    (outcome,) = await engine.put("shop", "bag", [NewMessage(body)])
    assert isinstance(outcome, MessageId)
    return outcome


async def receive(engine: Engine, most: int) -> list[Delivery]:
    (found,) = await engine.receive("shop", "bag", [Ask(most)])
    assert isinstance(found, list)
    return found


def partition_of(message: MessageId) -> int:
    return next(place for place, run in enumerate(cut(64)) if ids.slice_of(message.number) <= run.last)


async def work_for(engine: Engine, clock: SteppedClock, most: int, duration_ms: int) -> set[bytes]:
    """A consumer that takes all that it is given, deletes what it can work on, and comes back every half minute."""
    seen: set[bytes] = set()
    end_ms = clock.ms + duration_ms
    while clock.ms < end_ms:
        while found := await receive(engine, most):
            seen.update(delivery.body for delivery in found)
            await engine.ack("shop", "bag", [each.receipt for each in found if each.body != POISON])
        await engine.step("shop", "bag")
        clock.ms += 31 * SECOND_MS
    return seen


@pytest.mark.parametrize(("most", "poison"), [(1, 64), (10, 400)], ids=["one by one", "in batches"])
@played
async def test_a1_what_nobody_can_work_on_keeps_no_other_message_from_being_delivered(most: int, poison: int) -> None:
    """Some messages are never deleted: whoever gets one fails. When a partition's lock is over the lowest ids of its
    oldest epoch are given again, the very same ones; what lies behind them in the partition is never given to anybody,
    and goes with its retention."""
    clock, store = new_world()
    engine = server(store, clock)
    await create(engine, min_partitions=64, max_partitions=64, visibility_timeout_ms=30 * SECOND_MS)
    for _ in range(poison):
        await put(engine, POISON)
    good = {b"%d" % number for number in range(640)}
    for body in good:
        await put(engine, body)
    seen = await work_for(engine, clock, most, 4 * HOUR_MS)
    never = good - seen
    assert not never, f"{len(never)} of {len(good)} were never delivered in four hours"


@played
async def test_a1_every_message_was_delivered_before_its_retention_is_over() -> None:
    """As above, to the end: whoever takes one message at a time fails on all of them, and tries for four days. Two of
    three are gone then, and were never given to anybody."""
    clock, store = new_world()
    engine = server(store, clock)
    await create(engine, min_partitions=16, max_partitions=16, visibility_timeout_ms=HOUR_MS)
    for number in range(48):
        await put(engine, b"%d" % number)
    given: set[bytes] = set()
    end_ms = clock.ms + 4 * DAY_MS + HOUR_MS
    while clock.ms < end_ms:
        while found := await receive(engine, 1):
            given.update(delivery.body for delivery in found)
        await engine.step("shop", "bag")
        clock.ms += HOUR_MS
    assert len(given) == 48, f"{48 - len(given)} of 48 expired and were given to nobody"


@played
async def test_d3_the_partitions_of_a_server_that_nobody_receives_from_are_served() -> None:
    """Two servers live; all consumers have their connections to one of them, the other takes puts only. The one serves
    its own share as long as anything unlocked is in it, and as long as consumers do not keep up with half of the
    puts something always is. The other half waits, however old it is: a partition is served many times before another
    that has messages is served once (D3)."""
    clock, store = new_world()
    engine, putting = server(store, clock), server(store, clock)
    await create(engine, min_partitions=64, max_partitions=64, visibility_timeout_ms=SECOND_MS)
    for number, each in enumerate((engine, putting)):
        await each.membership.step(Presence(f"place-{number}", "host", number, "1", 0), Holdings())
    await engine.membership.look()
    assert engine.membership.place()[1] == 2
    for _ in range(200):
        await put(putting, b"first")
    served: Counter[int] = Counter()
    for _ in range(500):
        await putting.put("shop", "bag", [NewMessage(b"more")] * 20)
        found = await receive(engine, 8)
        await engine.ack("shop", "bag", [delivery.receipt for delivery in found])
        served.update({partition_of(delivery.id) for delivery in found})
        clock.ms += SECOND_MS
    never = 64 - len(served)
    assert not never, f"{never} of 64 partitions were never served, others {min(served.values())} times and more"
