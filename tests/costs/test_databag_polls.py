"""What a receive of a databag reads where it finds nothing, and where very much has come at once: attacks that need so
many messages that they are no measure of the engine's branches."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.model import Ask
from tests.attacks.bags import SECOND_MS, Counted, create, delete, put, receive
from tests.attacks.worlds import HOUR_MS, new_world, played, server

POLLS = 20


async def read_by_a_poll(waiting: int, body: bytes) -> tuple[int, int]:
    """Rows that a receive reads for nothing, and the bytes of their bodies, when so many messages wait behind locks of
    every second partition and the others are empty."""
    clock, store = new_world()
    counted = Counted(store)
    engine = server(counted, clock)
    await create(engine, min_partitions=1_000, max_partitions=1_000, visibility_timeout_ms=SECOND_MS)
    await put(engine, 2 * waiting, body, at_once=1_000)
    for _ in range(500):
        # Whose turn comes is locked for long, and the next one for a second.
        await engine.receive("shop", "bag", [Ask(1, 12 * HOUR_MS)])
        await receive(engine, 1)
    for _ in range(100):
        clock.ms += SECOND_MS
        found = await receive(engine, 1_000)
        await delete(engine, *(delivery.id for delivery in found))
        await engine.step("shop", "bag")
        if not found:
            break
    counted.begin()
    for _ in range(POLLS):
        clock.ms += SECOND_MS
        assert await receive(engine, 10) == []
    return counted.rows // POLLS, counted.bytes // POLLS


@played
async def test_d5_a_poll_does_not_read_what_waits_behind_locks() -> None:
    """D5: get does not grow with depth. Every second partition is locked for long, and thousands wait behind these
    locks; the others are empty. As nothing was found in those, little is expected, and all of a block is read with one
    range, from the first that is unlocked to the last: every poll reads all that waits."""
    few, many = (await read_by_a_poll(2_000, b"m"))[0], (await read_by_a_poll(16_000, b"m"))[0]
    assert many <= limits.BAG_LOOK_MOST_ROWS + few, f"{many} rows, and {few} where an eighth waits"


@played
async def test_d5_a_poll_does_not_read_the_bodies_of_what_waits_behind_locks() -> None:
    """As above, with fewer messages that are large."""
    _, read = await read_by_a_poll(1_000, b"m" * 20_000)
    assert read <= 2 * limits.BAG_LOOK_BYTES, f"{read // 1_000_000} MB for nothing"


async def read_after_a_rush(messages: int) -> int:
    """Rows that are read for ten of so many, by who has found nothing just before they came."""
    clock, store = new_world()
    counted = Counted(store)
    engine = server(counted, clock)
    await create(engine)
    for _ in range(2):
        assert await receive(engine, 10) == []
    await put(engine, messages, at_once=1_000)
    clock.ms += 2 * SECOND_MS
    counted.begin()
    assert len(await receive(engine, 10)) == 10
    return counted.rows


def test_d5_what_who_expects_nothing_reads_of_a_rush_does_not_grow_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """D5: get does not grow with depth. Who has found nothing looks at all epochs of all blocks at once; each read is
    bounded, and how many there are is not: ten messages of a backlog of sixty epochs are sixty times sixteen reads, in
    one call, of 64 rows each."""
    monkeypatch.setattr(limits, "BAG_EPOCH_MESSAGES", 64)
    few, many = (asyncio.run(read_after_a_rush(messages)) for messages in (16_000, 160_000))
    assert many <= limits.BAG_BLOCKS * limits.BAG_LOOK_MOST_ROWS, f"{many} rows, and {few} of a tenth"
