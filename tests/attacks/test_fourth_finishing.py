"""Flags of a conditional write that is decided, and whose commit has reached one replica (row 19 of docs/cassandra.md).

A read that meets it there gives the others the flags, which always come along, and of the rows those that it asked
for: of a span of other rows none. So the flag that is raised with every change of a partition is seen, and the rows
that came with it are not; and who rests on the flag rests on rows that were before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.store import Slice, Span
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings, WantedChange
from tests.attacks.half_committed import HalfCommitted
from tests.attacks.minority import never
from tests.attacks.worlds import Halt, HookedStore, bodies, consume, new_world, on, played, server

SECOND = 1_000
MINUTE = 60 * SECOND


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a1_no_bucket_is_finished_over_who_was_admitted_and_is_not_seen(near: bool) -> None:
    """A put that slept admits its message (R1). The flag `admitted` keeps the bucket from being finished over it: who
    finishes has seen the flag as it is, and so, it is thought, the row that came with it. Here he has read the bodies
    before the put wrote its own, and the states when only their flags had got about: a heartbeat for another message of
    the bucket had asked the one replica."""
    clock, store = new_world()
    half = HalfCommitted(store, STATES, lambda change: "admitted" in change.set_flags)
    half.lands = asyncio.Event()
    way, late = HookedStore(half.seen()), half.writer()
    worker, consumer = server(way, clock), server(half.seen(), clock)
    await consumer.create_queue(
        "shop", "jobs", QueueSettings(bucket_size=2, visibility_timeout_ms=MINUTE, repair_timeout_ms=SECOND)
    )
    asleep = Halt(on(BODIES))
    late.hooks["write"] = asleep
    putting = asyncio.create_task(server(late, clock).put("shop", "jobs", [NewMessage(b"slow")]))
    await asleep.reached.wait()
    await consumer.put("shop", "jobs", [NewMessage(b"quick"), NewMessage(b"next")])
    ((quick,),) = await consumer.receive("shop", "jobs", [Ask(1)])
    assert quick.body == b"quick"
    for _ in range(100):
        # Its bucket is closed and settled, and not finished as long as this one is not acked.
        await consumer.receive("shop", "jobs", [Ask(1)])
        await worker.step("shop", "jobs")
        clock.ms += 100
    assert (await worker.marks("shop", "jobs"))[0].settled == 1
    assert await consumer.ack("shop", "jobs", [quick.receipt]) == [None]

    async def bodies_first(spans: Sequence[Span]) -> list[Slice] | None:
        """The items of one read are independent of each other, and may be read in any order."""
        if len(spans) != 2 or not (on(BODIES)(spans) and on(STATES)(spans)) or asleep.wake.is_set():
            return None
        seen = half.seen()
        (born,) = await seen.read(spans[1:])
        asleep.wake.set()
        await half.reached.wait()
        half.near = on_states if near else never
        # The consumer's heartbeat comes too late for its own message. It reads that message's state, and no other.
        await consumer.change("shop", "jobs", [WantedChange(quick.receipt, visibility_ms=MINUTE)])
        half.near = never
        (states,) = await seen.read(spans[:1])
        return [states, born]

    way.hooks["read"] = bodies_first
    clock.ms += limits.LOW_PAUSE_MAXIMUM_MS
    await worker.step("shop", "jobs")
    assert asleep.wake.is_set()
    half.lands.set()
    (confirmed,) = await putting
    assert isinstance(confirmed, MessageId) and confirmed.number == 0
    assert b"slow" in bodies(await consume(consumer, clock, steps=600))


def on_states(span: Span) -> bool:
    return span.partition.table is STATES
