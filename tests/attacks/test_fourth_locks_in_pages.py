"""Locks of a databag that are read in pages, of which one meets the replica that has heard of a serving and the next
does not (row 19 of docs/cassandra.md). Rows with bytes are read in pages of 100 at first (stores/cassandra/selects.py),
and a block has up to 256 of them: it is read so no longer, as the table is small (contract 1)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine import places
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_LOCKS
from angelhair.engine.store import Change, Slice, Span
from angelhair.model import DATABAG, Delivery, QueueSettings
from angelhair.stores.cassandra.selects import PAGE_ROWS_FIRST
from tests.attacks.bags import put, receive
from tests.attacks.half_committed import HalfCommitted
from tests.attacks.minority import never
from tests.attacks.worlds import new_world, played, server

SECOND = 1_000
HIDE_MS = 30 * SECOND


class HalfCommittedFirstPage(HalfCommitted):
    """The first page asks the replica that has it, with the flags; those behind it ask the others. Of a small table
    there is one page."""

    def _seen(self, span: Span, found: Slice) -> Slice:
        if self.near(span) and span.partition in self._before and not span.partition.table.small:
            super()._seen(span, found._replace(rows=list(found.rows)[:PAGE_ROWS_FIRST]))
            near, self.near = self.near, never
            try:
                return super()._seen(span, found)
            finally:
                self.near = near
        return super()._seen(span, found)


async def all_of_it(engine: Engine) -> list[int]:
    numbers: list[int] = []
    while found := await receive(engine, 1_000):
        numbers += [delivery.id.number for delivery in found]
    return numbers


@pytest.mark.parametrize("near", [False, True])
@played
async def test_d3_what_is_being_served_is_not_served_by_who_has_seen_half_of_the_locks(near: bool) -> None:
    """The block's version is newer than the rows behind the first page. Who serves by these rests on that version: it
    holds, and his lock takes the place of one that was taken a moment before. Both give the same message (A2)."""
    clock, store = new_world()
    behind: dict[str, list[int]] = {}

    def far_behind(change: Change) -> bool:
        rows = behind.get(change.partition.key, [])
        return bool(change.rows) and all(row.key in rows[PAGE_ROWS_FIRST:] for row in change.rows)

    half = HalfCommittedFirstPage(store, BAG_LOCKS, far_behind)
    one = server(store, clock)
    await one.create_queue(
        "shop", "bag",
        QueueSettings(kind=DATABAG, min_partitions=4_096, max_partitions=4_096, visibility_timeout_ms=HIDE_MS),
    )
    await put(one, 6_000, at_once=1_000)
    await all_of_it(one)
    queue = await one.find_queue("shop", "bag")
    for block in range(16):
        partition = places.bag_locks(queue.incarnation, block)
        (found,) = await store.read([Span(partition)])
        behind[partition.key] = [int(row.key) for row in found.rows]
    clock.ms += HIDE_MS + SECOND
    half.lands = asyncio.Event()
    serving = server(half.writer(), clock)
    given: list[int] = []
    last: asyncio.Task[list[Delivery]] | None = None
    while not half.reached.is_set():
        last = asyncio.create_task(receive(serving, 1))
        reached = asyncio.create_task(half.reached.wait())
        await asyncio.wait([last, reached], return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        if last.done():
            given += [delivery.id.number for delivery in last.result()]
    assert last is not None
    half.near = (lambda span: span.partition.table is BAG_LOCKS) if near else never
    given_there = await all_of_it(server(half.seen(), clock))
    half.lands.set()
    given += [delivery.id.number for delivery in await last]
    assert not set(given) & set(given_there)
