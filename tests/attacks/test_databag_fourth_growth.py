"""Attacks on how the number of partitions follows the load (D4)."""

from __future__ import annotations

from angelhair import limits
from angelhair.model import NewMessage
from tests.attacks.bags import SECOND_MS, create, delete, receive
from tests.attacks.worlds import new_world, played, server


@played
async def test_d4_partitions_become_more_where_messages_come_to_locked_ones() -> None:
    """D4, `docs/databags.md`: the number is doubled if a receive got less than it asked for while messages waited
    behind locks. Two messages come in a second; whoever asks is given all that lies in a partition, and nothing is left
    behind its lock. What comes after that waits behind it for half a minute, and every poll in that time finds no
    unlocked partition. But what counts is only what a serving has left: the number stays at the least for ever."""
    clock, store = new_world()
    engine, producer = server(store, clock), server(store, clock)
    await create(engine, min_partitions=16, max_partitions=1_024, visibility_timeout_ms=30 * SECOND_MS)
    waited = polls = 0
    for _ in range(4 * limits.BAG_SYNC_MS // SECOND_MS):
        for _ in range(2):
            await producer.put("shop", "bag", [NewMessage(b"m")])
        while found := await receive(engine, 100):
            await delete(engine, *(delivery.id for delivery in found))
        polls += 1
        waited += bool((await engine.stats("shop", "bag")).visible)
        clock.ms += SECOND_MS
    assert waited > polls // 2, "a poll that finds nothing unlocked while messages wait"
    assert (await engine.partitions("shop", "bag")).partitions > 16
