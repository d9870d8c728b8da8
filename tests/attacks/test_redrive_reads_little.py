"""What a redrive reads to move a few of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine.schema import BODIES
from angelhair.engine.store import Slice, Span
from angelhair.model import Ask, NewMessage, QueueSettings
from tests.attacks.minority import Minority, dates, never
from tests.attacks.worlds import HookedStore, consume, new_world, played, server

KIB = 1_024


@pytest.mark.parametrize("destination", [None, "jobs"])
@played
async def test_a_redrive_reads_the_bodies_of_what_it_moves(destination: str | None) -> None:
    """Where each goes back to the queue that it came from, as many are looked for as one look may bring; and the bodies
    of all of them were read at once, to see whether they are whole: a thousand may have 256 MiB."""
    clock, store = new_world()
    read_bytes = 0

    async def count(spans: Sequence[Any]) -> list[Slice]:
        nonlocal read_bytes
        found = await store.read(spans)
        for part in found:
            read_bytes += sum(len(body) for row in part.rows if isinstance(body := row.values.get("body"), bytes))
        return found

    way = HookedStore(store)
    other = server(way, clock)
    await other.create_queue("shop", "dead", QueueSettings())
    settings = QueueSettings(dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=100)
    await other.create_queue("shop", "jobs", settings)
    await other.put("shop", "jobs", [NewMessage(b"p" * 64 * KIB)] * 100)
    for _ in range(200):
        await other.receive("shop", "jobs", [Ask(10)])
        await other.step("shop", "jobs")
        clock.ms += 100
    assert (await other.stats("shop", "dead")).visible == 100
    way.hooks["read"] = count
    assert await other.redrive("shop", "dead", destination, 1) == 1
    assert read_bytes <= 2 * 64 * KIB, f"{read_bytes // KIB} KiB to move 64 KiB"


@played
async def test_a_redrive_of_one_gets_past_many_that_are_there_in_part() -> None:
    """It looked for one message more, in the whole bucket, for each of them."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    seen = minority.seen()
    putter, other = server(minority.writer(), clock), server(seen, clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    await other.create_queue("shop", "new", QueueSettings())
    await putter.put("shop", "jobs", [NewMessage(b"lost")] * 50)
    await other.put("shop", "jobs", [NewMessage(b"whole")])
    minority.near = dates
    await other.stats("shop", "jobs")
    minority.near = never
    rows = 0
    reading = seen.hooks["read"]

    async def count(spans: Sequence[Span]) -> list[Slice] | None:
        nonlocal rows
        found = await reading(spans)
        rows += sum(len(part.rows) for part in found or ())
        return found

    seen.hooks["read"] = count
    assert await other.redrive("shop", "jobs", "new", 1) == 1
    assert rows < 1_000, rows
    assert [each.body for each in await consume(other, clock, "new", steps=20)] == [b"whole"]
