"""Rows of which a part is seen: a put that nobody has confirmed lies on a minority of the replicas, and somebody reads
its dates there. Cassandra then gives those, and nothing else of the row, to the others (row 19)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine.schema import BODIES, BODY_DATES
from angelhair.engine.store import Row, Slice, Span, Store, Write
from angelhair.model import MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import HookedStore, bodies, consume, new_world, on, played, server


class OnItsWay:
    """A hook for the first write of bodies: it is under way until `lands`. Meanwhile others see the dates of its rows,
    if they ask for no more than that; who asks for the whole row is given as much of it, or does not see it at all."""

    def __init__(self, again: bool = True) -> None:
        self._again = again
        self.begun = asyncio.Event()
        self.lands = asyncio.Event()
        self._writes: list[Write] = []

    async def write(self, items: Sequence[Any]) -> None:
        if not self.begun.is_set() and on(BODIES)(items):
            self._writes = [item for item in items if item.partition.table is BODIES]
            self.begun.set()
            await self.lands.wait()
            self._writes = []

    def seen_through(self, store: Store) -> HookedStore:
        async def read(spans: Sequence[Span]) -> list[Slice]:
            return [self._with_dates(span, found) for span, found in zip(spans, await store.read(spans), strict=True)]

        seen = HookedStore(store)
        seen.hooks["read"] = read
        return seen

    def _with_dates(self, span: Span, found: Slice) -> Slice:
        if span.columns is None and not self._again:
            return found
        rows = {row.key: row for row in found.rows}
        wanted = BODY_DATES if span.columns is None else [name for name in span.columns if name in BODY_DATES]
        for write in self._writes:
            for row in write.rows if write.partition == span.partition else ():
                if (span.first is None or row.key >= span.first) and (span.last is None or row.key <= span.last):
                    rows.setdefault(row.key, Row(row.key, {name: row.values.get(name) for name in wanted}))
        return found._replace(rows=[rows[key] for key in sorted(rows)])


@played
async def test_what_is_there_in_part_keeps_nothing_back() -> None:
    """Naive: whoever reads a row takes it to be whole. Nothing was received, until the put came through at last."""
    clock, store = new_world()
    under_way = OnItsWay()
    slow = HookedStore(store)
    slow.hooks["write"] = under_way.write
    putter, other = server(slow, clock), server(under_way.seen_through(store), clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    putting = asyncio.create_task(putter.put("shop", "jobs", [NewMessage(b"slow")]))
    await under_way.begun.wait()
    await other.put("shop", "jobs", [NewMessage(b"quick")])
    assert bodies(await consume(other, clock, steps=5)) == [b"quick"]
    assert await other.peek("shop", "jobs", 10) == []
    under_way.lands.set()
    (confirmed,) = await putting
    assert isinstance(confirmed, MessageId)
    assert bodies(await consume(other, clock, steps=100)) == [b"slow"]


@pytest.mark.parametrize("again", [True, False])
@played
async def test_what_is_there_in_part_is_not_moved_away(again: bool) -> None:
    """Its dates are there, so it is admitted; what has no body can be claimed and not handed out, until it is dead.
    Naive: with nothing to move, its move was done; then its put was confirmed, and nobody ever got it."""
    clock, store = new_world()
    under_way = OnItsWay(again)
    slow = HookedStore(store)
    slow.hooks["write"] = under_way.write
    putter, other = server(slow, clock), server(under_way.seen_through(store), clock)
    await other.create_queue("shop", "dead", QueueSettings())
    settings = QueueSettings(
        bucket_size=2, dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=100, repair_timeout_ms=1_000
    )
    await other.create_queue("shop", "jobs", settings)
    putting = asyncio.create_task(putter.put("shop", "jobs", [NewMessage(b"slow")]))
    await under_way.begun.wait()
    await other.put("shop", "jobs", [NewMessage(b"quick %d" % number) for number in range(3)])
    quick = bodies(await consume(other, clock, steps=600))
    assert sorted(quick) == [b"quick 0", b"quick 1", b"quick 2"]
    under_way.lands.set()
    (confirmed,) = await putting
    assert isinstance(confirmed, MessageId)
    here = bodies(await consume(other, clock, steps=200))
    there = bodies(await consume(other, clock, "dead", steps=50))
    assert here + there == [b"slow"]
