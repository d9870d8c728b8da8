"""Directed attacks on databags, as those of `attack.py`."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.databag import ids
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.model import DATABAG, Ask, MessageId, NewMessage, QueueSettings
from tests.simulation.mutants.attack import ACCOUNT, QUEUE, World

HOUR_MS = 3_600_000


async def late_put_to_what_was_seen_empty() -> bool:
    """R1: a put sleeps while its epoch is sealed, and another server sees that nothing is left where it will lie. What
    has kept the epoch is deleted then, and before the epoch is finished the put wakes up."""
    world = World()
    worker, sleeper = world.first, world.second
    await worker.create_queue(ACCOUNT, QUEUE, QueueSettings(kind=DATABAG, visibility_timeout_ms=HOUR_MS))
    kept: dict[int, str] = {}
    for _ in range(10):
        for outcome in await worker.put(ACCOUNT, QUEUE, [NewMessage(b"m")] * 16):
            assert isinstance(outcome, MessageId)
            block = ids.block_of(ids.slice_of(outcome.number))
            if block in kept:
                await worker.ack(ACCOUNT, QUEUE, [str(outcome)])
            kept.setdefault(block, str(outcome))
    while await world.take(worker):
        "Until all that stays is locked."

    async def sealed_and_seen() -> None:
        world.dial.now_ms += limits.BAG_EPOCH_AGE_MS
        await worker.step(ACCOUNT, QUEUE)
        await worker.ack(ACCOUNT, QUEUE, list(kept.values()))
        world.dial.now_ms += HOUR_MS
        for _ in range(3):
            world.dial.now_ms += 2_000
            assert await world.take(worker) == []

    world.store.next("write", BAG_MESSAGES, sealed_and_seen)
    (late,) = await sleeper.put(ACCOUNT, QUEUE, [NewMessage(b"late")])
    assert isinstance(late, MessageId)
    assert ids.block_of(ids.slice_of(late.number)) in kept, "its epoch is finished, and it was put to another"
    world.dial.now_ms += 2_000
    await world.take(worker)
    return b"late" in world.delivered


async def rush_is_cut_finer() -> bool:
    """D4: messages wait behind locks, and the next sync finds that out."""
    world = World()
    server = world.first
    settings = QueueSettings(kind=DATABAG, min_partitions=16, max_partitions=64, visibility_timeout_ms=HOUR_MS)
    await server.create_queue(ACCOUNT, QUEUE, settings)
    await server.put(ACCOUNT, QUEUE, [NewMessage(b"m")] * 400)
    while await server.receive(ACCOUNT, QUEUE, [Ask(1)]) != [[]]:
        "Until all is locked."
    world.dial.now_ms += limits.BAG_SYNC_MS
    return (await server.partitions(ACCOUNT, QUEUE)).partitions == 32
