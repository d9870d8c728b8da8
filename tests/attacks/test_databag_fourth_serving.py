"""Attacks on who is served of a databag: a message that failed once, where there is always something behind it."""

from __future__ import annotations

from collections import Counter

from angelhair import limits
from angelhair.engine.databag.passed import NOTHING_PASSED, last_of
from angelhair.model import MessageId
from tests.attacks.bags import SECOND_MS, create, delete, put, receive
from tests.attacks.worlds import HOUR_MS, new_world, played, server

MINUTE_MS = 60 * SECOND_MS
BATCH = 160
"""Ten of each partition."""


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


def test_a1_all_that_was_passed_over_comes_again_whatever_comes_behind_it() -> None:
    """Three batches of a partition fail for good, and there is always more behind them than a serving gives. Were those
    that come back always at the lowest id, the first batch would be all that comes again of what was passed over; and
    were they all that there is, nothing new were served."""
    poison, there = set(range(30)), list(range(100))
    times: Counter[int] = Counter()
    given: list[int] = []
    passed = NOTHING_PASSED
    for turn in range(120):
        last = last_of(frozenset(given), given[-1] if given else None, passed, 0, long_ago=False)
        begins = last.behind or last.comes_back or not last.given.isdisjoint(there)
        before = [number for number in there if begins and last.point(number) <= last.end]
        beyond = there[len(before) :]
        given = (beyond + before)[:10]
        passed = last.then(given, len(beyond), bool(before))
        times.update(given)
        there = [number for number in there if number in poison or number not in given]
        there += range(100 + 10 * turn, 110 + 10 * turn)
    served = sorted(times[number] for number in poison)
    assert served[0] >= 120 // limits.BAG_PASSED_SERVINGS // 4, served
    assert len(times) - len(poison) >= 120 * 10 // 2, f"{len(times)} were served at all"
