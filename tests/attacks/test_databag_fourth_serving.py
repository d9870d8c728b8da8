"""Attacks on who is served of a databag: a message that failed once, where there is always something behind it."""

from __future__ import annotations

from collections import Counter

from angelhair.engine.databag import ids
from angelhair.engine.engine import Engine
from angelhair.model import MessageId
from tests.attacks.bags import SECOND_MS, create, delete, put, receive
from tests.attacks.worlds import HOUR_MS, new_world, played, server

MINUTE_MS = 60 * SECOND_MS
BATCH = 160
"""Ten of each partition."""


async def put_into(engine: Engine, block: int, count: int) -> list[MessageId]:
    """Puts until so many lie there; the others are deleted."""
    kept: list[MessageId] = []
    while len(kept) < count:
        messages = await put(engine, 320, at_once=320)
        good = [each for each in messages if ids.block_of(ids.slice_of(each.number)) == block]
        kept += good[: count - len(kept)]
        await delete(engine, *(message for message in messages if message not in set(kept)))
    return kept


@played
async def test_a1_what_failed_once_is_delivered_again_though_there_is_always_something_behind_it() -> None:
    """A1: again and again until it is acked. Consumers keep up with what comes, and half an hour's work lies before
    them that becomes no more and no less. One batch fails, once: a consumer died. From then on the serving of each
    partition begins behind what is still there of it, and goes on so until the end is reached. It never is, as what
    comes lies behind. So nobody is given the batch a second time, and it goes with its retention, while what came hours
    later has long been worked on."""
    clock, store = new_world()
    engine = server(store, clock)
    await create(engine, min_partitions=16, max_partitions=16, visibility_timeout_ms=SECOND_MS, retention_ms=HOUR_MS)
    for _ in range(30):
        # A minute's each, and as many that are gone: so that there are epochs as there are in a rush.
        clock.ms += MINUTE_MS
        await delete(engine, *(await put(engine, 2 * BATCH, at_once=2 * BATCH))[:BATCH])
        await engine.step("shop", "bag")
    failed: set[MessageId] = set()
    again: set[MessageId] = set()
    for minute in range(90):
        clock.ms += MINUTE_MS
        found = {delivery.id for delivery in await receive(engine, BATCH)}
        if minute == 0:
            failed = found
        else:
            again |= found & failed
            await delete(engine, *found)
        await put(engine, BATCH, at_once=BATCH)
        await engine.step("shop", "bag")
    assert failed <= again, f"{len(failed - again)} of {len(failed)} were never delivered again, and are gone"


@played
async def test_a1_all_that_was_passed_over_comes_again_whatever_comes_behind_it() -> None:
    """Thirty messages of a partition fail for good, three batches; and whatever is put behind them is more than the
    partition gives until the next comes. Were those that come back always at the lowest id, the first ten would be all
    that is served a second time of what was passed over; and were they all that come back, nothing new were served."""
    clock, store = new_world()
    engine = server(store, clock)
    await create(engine, min_partitions=16, max_partitions=16, visibility_timeout_ms=SECOND_MS)
    poison = set(await put_into(engine, 0, 30))
    times: Counter[MessageId] = Counter()
    good = 0
    for _ in range(60):
        await put_into(engine, 0, 12)
        found = {delivery.id for delivery in await receive(engine, 10)}
        times.update(found & poison)
        good += len(found - poison)
        await delete(engine, *(found - poison))
        clock.ms += 2 * SECOND_MS
        await engine.step("shop", "bag")
    assert min(times[each] for each in poison) >= 3, f"served {sorted(times[each] for each in poison)} times"
    assert good >= 60 * 10 // 2, f"{good} of 600 places were for those that can be worked on"
