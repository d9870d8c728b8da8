"""D5: what a poll of a databag costs through which large messages have passed."""

from __future__ import annotations

from angelhair import limits
from tests.attacks.bags import SECOND_MS, Counted, create, delete, put, receive
from tests.attacks.worlds import new_world, played, server

CALLS = 6
"""As `docs/decisions/0026` says: one after another, whatever was there before; where that was large, when its epochs
are finished."""

TENDS = 32
"""A server finishes `BAG_FINISH_EPOCHS` of a block each time, and how many a block has here is chance: ten or so."""


@played
async def test_d5_a_poll_takes_few_calls_though_large_messages_have_passed() -> None:
    """Naive: a message that is deleted keeps its body until its epoch goes, an epoch takes a thousand messages however
    large they are, and a look reads bodies of what is deleted, a megabyte at a time: a hundred messages of 100 kB in a
    block are ten reads one after another, and 160 MB in all, by every poll of a databag in which nothing is."""
    clock, store = new_world()
    counted = Counted(store)
    engine = server(counted, clock)
    await create(engine, visibility_timeout_ms=SECOND_MS)
    for _ in range(8):
        messages = await put(engine, 200, b"m" * 100_000, at_once=1)
        await receive(engine, 10)
        await delete(engine, *messages)
        clock.ms += 2 * SECOND_MS
        await engine.step("shop", "bag")
    for _ in range(TENDS):
        clock.ms += limits.BAG_TEND_MS
        await engine.step("shop", "bag")
    assert await receive(engine, 10) == [], "it learns how large they were"
    calls: list[int] = []
    for _ in range(5):
        clock.ms += 2 * SECOND_MS
        counted.begin()
        assert await receive(engine, 10) == []
        calls.append(counted.calls)
    assert max(calls) <= CALLS, calls
