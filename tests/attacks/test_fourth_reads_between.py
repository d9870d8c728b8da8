"""What a receive reads of bodies that nobody wants: those between two that it does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES
from angelhair.engine.store import Slice, Span
from angelhair.model import NewMessage, QueueSettings
from tests.attacks.worlds import HookedStore, bodies, consume, new_world, played, server

SECOND = 1_000
KB = 1024


@pytest.mark.parametrize("again", [False, True])
@played
async def test_a14_two_messages_do_not_cost_the_bucket_that_lies_between_them(again: bool) -> None:
    """The first and the last of a bucket come due together; all others are acked long ago. Before a first claim they
    are read whole, from the one to the other, with everything in between: of a bucket of 1,000 messages of 8 MiB, eight
    gigabytes at once, however little was asked for. `limits.PORTION_BYTES` is what "a receive reads in one go".
    `again`: the same of what was delivered before, whose bodies are read after the claim."""
    clock, store = new_world()
    way, read = HookedStore(store), 0
    engine = server(way, clock)
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=400, visibility_timeout_ms=20 * SECOND))
    late = NewMessage(b"x" * (100 * KB), delay_ms=None if again else 20 * SECOND)
    quick = NewMessage(b"q" * (100 * KB))
    await engine.put("shop", "jobs", [late])
    for _ in range(398):
        await engine.put("shop", "jobs", [quick])
    await engine.put("shop", "jobs", [late])
    for delivery in await consume(engine, clock, steps=60, step_ms=10, ack=False):
        if delivery.body[:1] == b"q":
            await engine.ack("shop", "jobs", [delivery.receipt])

    async def counted(spans: Sequence[Span]) -> list[Slice]:
        nonlocal read
        found = await store.read(spans)
        read = max(read, sum(
            len(body)
            for span, part in zip(spans, found, strict=True) if span.partition.table is BODIES
            for row in part.rows if isinstance(body := row.values.get("body"), bytes)
        ))
        return found

    way.hooks["read"] = counted
    clock.ms += 30 * SECOND
    got = bodies(await consume(engine, clock, steps=3))
    assert len(got) == 2 and {body[:1] for body in got} == {b"x"}
    assert read <= limits.PORTION_BYTES, read
