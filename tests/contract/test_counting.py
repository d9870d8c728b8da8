"""The counting store counts what was asked, item by item, and two counts can be subtracted."""

from __future__ import annotations

import asyncio

from angelhair.engine.store import Change, Partition, Row, RowChange, Span, Together, Write
from angelhair.stores.counting import CountingStore, Counts
from angelhair.stores.memory import MemoryStore
from tests.contract.tools import GUARDED, PLAIN


def test_every_item_and_row_is_counted_once() -> None:
    async def story() -> None:
        store = CountingStore(MemoryStore(lambda: 0, joins=True))
        plain, guarded = Partition(PLAIN, "p"), Partition(GUARDED, "p")
        await store.write([Write(plain, [Row(key, {"enqueued_at": 1}) for key in range(5)]), Write(plain, [])])
        assert store.counts == Counts(writes=2, rows_written=5)
        before = store.counts
        claim = Change(guarded, [RowChange(1, {"delivery": None}, {"delivery": 1}), RowChange(2, {}, None)])
        await store.change([claim, claim, Change(guarded, set_flags={"final": 1})])
        assert store.counts - before == Counts(changes=3, changes_refused=1, rows_changed=4)
        before = store.counts
        await store.read([Span(plain), Span(plain, limit=2), Span(guarded, 7, 9)])
        assert store.counts - before == Counts(reads=3, rows_read=7)
        before = store.counts
        reserve = Change(guarded, [RowChange(5, {"delivery": None}, {"delivery": 1})])
        for refused in (0, 1):
            await store.together(Together(reserve, [Write(plain, [Row(9, {"enqueued_at": 1})])], [Span(plain)]))
            rows_read = 0 if refused else 6
            counted = Counts(1, refused, 1, 1, 1, 1, rows_read)
            assert store.counts - before == counted
            before = store.counts
        await store.drop([plain, guarded])
        await store.time_ms()
        await store.close()
        assert store.counts - before == Counts(drops=2, reads=1)
        assert before + Counts(drops=2, reads=1) == store.counts

    asyncio.run(story())
