"""What Spark has read of a row that is there in part, for the engine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from angelhair.engine import places
from angelhair.engine.schema import BODIES, KEYS
from angelhair.engine.store import Span
from angelhair.model import MessageId, NewMessage, QueueSettings
from angelhair.spark.reading.cassandra import and_the_rest
from tests.attacks.minority import Minority, never
from tests.attacks.worlds import bodies, consume, new_world, played, server

SECOND = 1_000
MINUTE = 60 * SECOND


@pytest.mark.parametrize("names", [(), ("enqueued_at",), ("attributes",), ("enqueued_at", "keyed")])
@played
async def test_a_bucket_with_a_key_that_spark_did_not_ask_for_is_kept_for_the_key(names: tuple[str, ...]) -> None:
    """Who reads a part of bodies reads all dates, when the key lapses among them. Spark asked for what its query did.
    Naive: the bucket was remembered as full, and without keys; so it was dropped before the key's window was over, and
    nobody could tell any more that its message had been given: put again with its key, it came again."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    minority.lands = asyncio.Event()
    way = minority.writer()

    async def dies(items: Any) -> None:
        if any(item.partition.table is KEYS and row.values.get("status") == "committed"
               for item in items for row in item.rows):
            raise asyncio.CancelledError

    way.hooks["change"] = dies
    putter, other = server(way, clock), server(minority.seen(), clock)
    settings = QueueSettings(bucket_size=2, history_ms=0, dedup_window_ms=60 * MINUTE, repair_timeout_ms=SECOND)
    await other.create_queue("shop", "jobs", settings)
    queue = await other.find_queue("shop", "jobs")
    slow = asyncio.create_task(putter.put("shop", "jobs", [NewMessage(b"keyed", key="k")]))
    while not minority._there:
        await asyncio.sleep(0)
    await other.put("shop", "jobs", [NewMessage(b"quick")] * 5)
    if names:
        minority.near = lambda span: True
        await minority.seen().read(
            [Span(places.bodies(queue.incarnation, 0, 0), 0, None, None, and_the_rest(BODIES, names))]
        )
        minority.near = never
    got = bodies(await consume(other, clock, steps=60))
    minority.lands.set()
    with pytest.raises(asyncio.CancelledError):
        await slow
    got += bodies(await consume(other, clock, steps=3_000))
    assert sorted(got) == [b"keyed", *[b"quick"] * 5]
    (confirmed,) = await other.put("shop", "jobs", [NewMessage(b"keyed", key="k")])
    assert isinstance(confirmed, MessageId)
    assert bodies(await consume(other, clock, steps=200)) == []
