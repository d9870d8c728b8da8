"""Attacks on what is done to whole queues: creating, purging, changing lanes, retention."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from angelhair.engine.schema import BODIES, POINTERS, QUEUES
from angelhair.engine.store import Change, Write
from angelhair.errors import QueueNotFound
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import (
    HOUR_MS,
    Halt,
    HookedStore,
    LandsLate,
    bodies,
    consume,
    new_world,
    on,
    played,
    receive_one,
    server,
)


@played
async def test_a_purge_does_not_hide_what_was_put_after_it() -> None:
    """A purge sleeps before it moves its mark; meanwhile messages above that mark are put and read into memory.
    The naive engine forgot its whole memory of the bucket with the purge, and never looked at them again."""

    def moves_the_purge_mark(changes: Sequence[Change]) -> bool:
        return any(
            change.partition.table is POINTERS and any(row.key == "purged" for row in change.rows) for change in changes
        )

    clock, store = new_world()
    hooked = HookedStore(store)
    engine = server(hooked, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    await engine.put("shop", "jobs", [NewMessage(b"0")])
    halt = Halt(moves_the_purge_mark)
    hooked.hooks["change"] = halt
    purging = asyncio.create_task(engine.purge("shop", "jobs"))
    await halt.reached.wait()
    assert await engine.put("shop", "jobs", [NewMessage(b"1"), NewMessage(b"2")]) == [MessageId(0, 1), MessageId(0, 2)]
    await receive_one(engine, visibility_ms=12 * HOUR_MS)  # brings 1 and 2 into memory
    halt.wake.set()
    await purging
    assert (await engine.marks("shop", "jobs"))[0].purged == 1
    # More than an hour of polling.
    assert sorted(bodies(await consume(engine, clock, steps=4_000, step_ms=1_000))) == [b"1", b"2"]


@played
async def test_a_purge_reaches_a_lane_that_its_server_has_not_heard_of() -> None:
    """One server adds a lane and puts into it; another, whose catalog is a moment old, purges the queue.
    The naive engine purged the lanes that it knew, and the messages of the new one came through."""
    clock, store = new_world()
    unaware, aware = server(store, clock), server(store, clock)
    await unaware.create_queue("shop", "jobs", QueueSettings())
    await aware.change_queue("shop", "jobs", {"lanes": 2})
    await aware.put("shop", "jobs", [NewMessage(b"message")])
    await aware.put("shop", "jobs", [NewMessage(b"message")])
    await unaware.purge("shop", "jobs")
    assert bodies(await consume(aware, clock)) == []


@played
async def test_a_lane_that_is_made_late_swallows_nothing() -> None:
    """A copy of the making of a lane lands after that lane was sealed, drained and forgotten, while a putter sleeps.
    The naive engine found fresh marks in the forgotten lane, and confirmed a message that nobody would read."""

    def writes_a_body_into_a_new_lane(writes: Sequence[Write]) -> bool:
        return any(write.partition.table is BODIES and ".0." not in write.partition.key for write in writes)

    clock, store = new_world()
    changing_store, sleepy_store = HookedStore(store), HookedStore(store)
    changing, sleepy = server(changing_store, clock), server(sleepy_store, clock)
    settings = QueueSettings(bucket_size=2, history_ms=0, repair_timeout_ms=100)
    await server(store, clock).create_queue("shop", "jobs", settings)
    late = LandsLate(on(POINTERS))
    changing_store.hooks["change"] = late
    await changing.change_queue("shop", "jobs", {"lanes": 2})
    halt = Halt(writes_a_body_into_a_new_lane)
    sleepy_store.hooks["write"] = halt
    first = asyncio.create_task(sleepy.put("shop", "jobs", [NewMessage(b"first")]))
    await asyncio.sleep(0)
    second = asyncio.create_task(sleepy.put("shop", "jobs", [NewMessage(b"second")]))
    await halt.reached.wait()
    await changing.change_queue("shop", "jobs", {"lanes": 1})
    received = await consume(changing, clock, steps=600, step_ms=200)
    assert list((await changing.find_queue("shop", "jobs")).lanes) == [0]
    await store.change(late.items)
    halt.wake.set()
    await asyncio.gather(first, second)
    received += await consume(changing, clock, steps=2_000, step_ms=500)
    assert sorted(bodies(received)) == [b"first", b"second"]


@played
async def test_a_creation_that_lands_late_does_not_break_the_queue_made_again() -> None:
    """A copy of a queue's creation lands after the queue was deleted and buried; then it is created again.
    The naive engine found the buried incarnation under the name, and answered `QueueNotFound` to every put."""
    clock, store = new_world()
    creating_store = HookedStore(store)
    other = server(store, clock)
    late = LandsLate(on(QUEUES))
    creating_store.hooks["change"] = late
    await server(creating_store, clock).create_queue("shop", "jobs", QueueSettings())
    await other.delete_queue("shop", "jobs")
    while await other.bury_step():
        pass
    await store.change(late.items)
    clock.ms += 10_000
    await other.create_queue("shop", "jobs", QueueSettings())
    outcomes: object = None
    for _ in range(100):
        clock.ms += 10_000
        try:
            outcomes = await other.put("shop", "jobs", [NewMessage(b"message")])
            break
        except QueueNotFound as error:
            outcomes = error
        await other.create_queue("shop", "jobs", QueueSettings())
    assert isinstance(outcomes, list), outcomes


@played
async def test_retention_passes_buckets_of_void_ids() -> None:
    """Nobody consumes, and a producer died with two reserved ids, each a bucket of its own.
    The naive engine looked no further than one bucket past an empty one, and expired messages stayed for ever."""
    clock, store = new_world()
    engine = server(store, clock)
    settings = QueueSettings(bucket_size=1, retention_ms=1_000, history_ms=0, repair_timeout_ms=100)
    await engine.create_queue("shop", "jobs", settings)
    await engine.reserve("shop", "jobs", 2)
    await engine.put("shop", "jobs", [NewMessage(b"message")] * 5)
    for _ in range(5_000):
        await engine.step("shop", "jobs")
        clock.ms += 1_000
    marks = (await engine.marks("shop", "jobs"))[0]
    assert marks.dropped >= 4, marks


@played
async def test_void_ids_hold_up_delivery_for_less_than_a_minute_in_buckets_larger_than_one() -> None:
    """A producer died with five hundred reserved ids, in buckets of a hundred; a message was put behind them.
    In buckets of one id it would wait two seconds for every eight of them: see docs/known-limits.md."""
    clock, store = new_world()
    engine = server(store, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=100, repair_timeout_ms=100))
    await engine.reserve("shop", "jobs", 500)
    await engine.put("shop", "jobs", [NewMessage(b"message")])
    began_ms = clock.ms
    while clock.ms - began_ms < 3 * HOUR_MS:
        (deliveries,) = await engine.receive("shop", "jobs", [Ask(1)])
        if deliveries:
            break
        await engine.step("shop", "jobs")
        clock.ms += 250
    assert clock.ms - began_ms < 60_000
