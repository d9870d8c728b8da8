"""Attacks on group commit by callers that give up, and that go on using the lists they had handed over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.batching.batching import Batching
from angelhair.engine.schema import SEQUENCES, STATES
from angelhair.errors import StaleReceipt
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from tests.attacks.worlds import Halt, HookedStore, bodies, consume, new_world, on, played, server


@played
async def test_a_caller_that_gives_up_and_adds_to_its_list_overwrites_nobody() -> None:
    """A producer's put times out while ids are being reserved for it; it adds a message to its list and puts again.
    The naive engine had reserved ids for the list as it was and wrote the list as it is: its last message went to
    an id that belonged to somebody else, whose message was confirmed and lost."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    batching = Batching(engine, AsyncioRuntime())
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    halt = Halt(on(SEQUENCES))
    hooked.hooks["change"] = halt
    batch = [NewMessage(b"first")]
    impatient = asyncio.create_task(batching.put("shop", "jobs", batch))
    await halt.reached.wait()
    other = asyncio.create_task(batching.put("shop", "jobs", [NewMessage(b"somebody else's")]))
    await asyncio.sleep(0)
    impatient.cancel()
    batch.append(NewMessage(b"second"))
    # The rows of the group that was under way are written last.
    late = Halt(lambda writes: any(row.values.get("body") == b"first" for write in writes for row in write.rows))
    hooked.hooks["write"] = late
    halt.wake.set()
    (confirmed,) = await other
    assert isinstance(confirmed, MessageId)
    late.wake.set()
    for _ in range(20):
        await asyncio.sleep(0)
    received = set(bodies(await consume(engine, clock, steps=50)))
    assert b"somebody else's" in received


@played
async def test_a_caller_that_gives_up_and_empties_its_list_takes_no_answer_of_another() -> None:
    """A consumer's ack times out while it is under way; it empties its list. Another consumer's stale receipt is acked
    in the same group.
    The naive engine cut the outcomes up by the lists as they were afterwards, and told the other one a wrong answer."""
    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    batching = Batching(engine, AsyncioRuntime())
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10, visibility_timeout_ms=100))
    await engine.put("shop", "jobs", [NewMessage(b"stale")])
    (stale,) = await batching.receive("shop", "jobs", Ask(1))
    clock.ms += 1_000
    (again,) = await batching.receive("shop", "jobs", Ask(1, 60_000))
    assert again.id == stale.id
    await engine.put("shop", "jobs", [NewMessage(b"-"), NewMessage(b"-")])
    first, second = await batching.receive("shop", "jobs", Ask(2, 60_000))
    halt = Halt(on(STATES))
    hooked.hooks["change"] = halt
    blocking = asyncio.create_task(batching.ack("shop", "jobs", [first.receipt]))
    await halt.reached.wait()
    receipts = [second.receipt]
    impatient = asyncio.create_task(batching.ack("shop", "jobs", receipts))
    other = asyncio.create_task(batching.ack("shop", "jobs", [stale.receipt]))
    await asyncio.sleep(0)

    async def give_up(changes: Sequence[Any]) -> None:
        impatient.cancel()
        receipts.clear()

    hooked.hooks["change"] = give_up
    halt.wake.set()
    assert await blocking == [None]
    (answer,) = await other
    assert isinstance(answer, StaleReceipt)


@pytest.mark.parametrize("seed", range(12))
@played
async def test_callers_that_give_up_at_any_moment_stop_nobody(seed: int) -> None:
    """Producers and consumers give up at any moment, some before their group begins, some after it ended.
    An engine whose groups waited for the answer of one that is gone would leave the others waiting for ever."""
    clock, store = new_world()
    dice = random.Random(seed)
    hooked = HookedStore(store)

    async def dawdle(items: Sequence[Any]) -> None:
        for _ in range(dice.choice([0, 1, 5])):
            await asyncio.sleep(0)

    for verb in ("read", "write", "change"):
        hooked.hooks[verb] = dawdle
    engine = server(hooked, clock)
    batching = Batching(engine, AsyncioRuntime())
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=7, visibility_timeout_ms=500))
    confirmed: set[bytes] = set()
    received: set[bytes] = set()

    async def produce(number: int) -> None:
        message = NewMessage(b"%d" % number, key=dice.choice([None, f"key {number}"]))
        (outcome,) = await batching.put("shop", "jobs", [message])
        assert isinstance(outcome, MessageId)
        confirmed.add(message.body)

    async def take() -> None:
        deliveries: list[Delivery] = await batching.receive("shop", "jobs", Ask(dice.choice([1, 3])))
        received.update(bodies(deliveries))
        if deliveries:
            await batching.ack("shop", "jobs", [delivery.receipt for delivery in deliveries])

    async def give_up_maybe(task: asyncio.Task[None]) -> None:
        for _ in range(dice.choice([0, 1, 2, 4, 9])):
            await asyncio.sleep(0)
        if dice.random() < 0.4:
            task.cancel()

    tasks: list[asyncio.Task[None]] = []
    for number in range(120):
        tasks += [asyncio.create_task(produce(number)), asyncio.create_task(take())]
        await asyncio.gather(give_up_maybe(tasks[-1]), give_up_maybe(tasks[-2]))
        clock.ms += 20
    ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    assert {type(result) for result in ended} <= {type(None), asyncio.CancelledError}
    for _ in range(400):
        clock.ms += 50
        await asyncio.wait_for(take(), 20)
        await engine.step("shop", "jobs")
    assert confirmed
    assert confirmed <= received
