"""Repair's count of acks: each of these would lose `late` if an ack could be counted twice.
"""

from __future__ import annotations

import asyncio
import itertools

import pytest

from angelhair import limits
from angelhair.engine.schema import STATES
from angelhair.engine.store import Change
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings
from angelhair.stores.memory import MemoryStore
from tests.attacks.worlds import SteppedClock, bodies, consume, played, server
from tests.faults import LOSE_ANSWER, FaultyStore


def settles(change: Change) -> bool:
    return any((row.values or {}).get("settled") == "acked" for row in change.rows)


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("order", ["again", "at once", "older receipt too"])
@played
async def test_acks_repeated_while_one_message_is_still_on_its_way(lost: int, order: str) -> None:
    """Bucket of 3: two messages are delivered and acked, twice over, with lost answers; the third is written late."""
    clock = SteppedClock()
    store = FaultyStore(MemoryStore(lambda: clock.ms, joins=True))
    engine, sleeper = server(store, clock), server(store.real, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(
        bucket_size=3, repair_timeout_ms=limits.REPAIR_TIMEOUT_MINIMUM_MS, visibility_timeout_ms=1_000, history_ms=0))
    await engine.put("shop", "jobs", [NewMessage(b"a"), NewMessage(b"b")])
    reservation = await sleeper.reserve("shop", "jobs", 1)
    await engine.put("shop", "jobs", [NewMessage(b"next")])
    (first,) = await engine.receive("shop", "jobs", [Ask(2)])
    assert isinstance(first, list) and bodies(first) == [b"a", b"b"]
    clock.ms += 2_000
    (second,) = await engine.receive("shop", "jobs", [Ask(2)])
    assert isinstance(second, list) and bodies(second) == [b"a", b"b"]
    if lost:
        store.next("change", STATES, LOSE_ANSWER, when=settles, times=lost)

    async def ack(deliveries: list[Delivery]) -> None:
        await engine.ack("shop", "jobs", [one.receipt for one in deliveries])

    if order == "at once":
        await asyncio.gather(*(ack(second[:n]) for n in (1, 2, 2, 1)))
    elif order == "again":
        for deliveries in (second[:1], second, second, second[1:]):
            await ack(deliveries)
    else:
        await ack([*first, *second, *first])
        await ack(second)
    queue = await engine.find_queue("shop", "jobs")
    assert engine.memory.lane(queue, 0).view.acked.get(0, 0) <= 2
    await consume(engine, clock, steps=5)
    (answer,) = await sleeper.put_reserved(reservation, [NewMessage(b"late")])
    assert isinstance(answer, MessageId)
    assert b"late" in bodies(await consume(engine, clock, steps=600))


@pytest.mark.parametrize("seed", range(3))
@played
async def test_two_servers_ack_what_the_other_delivered_and_redelivered(seed: int) -> None:
    """Each counts its own; with an id that is never written, and one that is redelivered, neither may finish early."""
    clock = SteppedClock()
    store = FaultyStore(MemoryStore(lambda: clock.ms, joins=True))
    one, two = server(store, clock), server(store, clock)
    await one.create_queue("shop", "jobs", QueueSettings(
        bucket_size=4, repair_timeout_ms=limits.REPAIR_TIMEOUT_MINIMUM_MS, visibility_timeout_ms=1_000, history_ms=0))
    wanted = set()
    for number in range(30):
        (answer,) = await (one, two)[number % 2].put("shop", "jobs", [NewMessage(b"%d" % number)])
        assert isinstance(answer, MessageId)
        wanted.add(b"%d" % number)
        if number % 5 == seed:
            await two.reserve("shop", "jobs", 1)
    acked: set[bytes] = set()
    turn = itertools.count()
    for _ in range(800):
        step = next(turn)
        (found,) = await (one, two)[step % 2].receive("shop", "jobs", [Ask(3)])
        assert isinstance(found, list)
        keep = [item for item in found if (item.id.number + item.deliveries + seed) % 3]  # the rest lapses
        if step % 4 == 0:
            store.next("change", STATES, LOSE_ANSWER, when=settles)
        outcomes = await (two, one)[step % 2].ack("shop", "jobs", [item.receipt for item in keep]) if keep else []
        acked |= {item.body for item, outcome in zip(keep, outcomes, strict=True) if outcome is None}
        store.heal()
        await one.step("shop", "jobs")
        await two.step("shop", "jobs")
        clock.ms += 100
    assert acked == wanted
    assert (await one.marks("shop", "jobs"))[0].repair >= 8
