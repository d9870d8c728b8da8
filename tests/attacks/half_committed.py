"""A conditional write that is decided, and whose commit has reached one replica of three: plain reads see it in part,
or not at all (row 19), until the next conditional write of its partition, which has it land first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from angelhair.engine.store import Change, Key, Partition, Row, Slice, Span, Store, Table, Values
from tests.attacks.minority import never
from tests.attacks.worlds import HookedStore
from tests.faults import changes_something


class HalfCommitted:
    """Of the first such change. Its sender dies, or sleeps until `lands`, if that is set."""

    def __init__(self, store: Store, table: Table, when: Callable[[Change], bool] = changes_something) -> None:
        self.store = store
        self.near: Callable[[Span], bool] = never
        """Which reads ask the replica that has it: the columns that they ask for, and flags, are everybody's then."""
        self.reached = asyncio.Event()
        self.lands: asyncio.Event | None = None
        self._table = table
        self._when = when
        self._before: dict[Partition, Slice] = {}
        self._spread: dict[Key, set[str]] = {}
        self._flags = False

    def writer(self) -> HookedStore:
        theirs = HookedStore(self.seen())
        others = theirs.real.hooks["change"]  # type: ignore[attr-defined]

        async def change(items: Sequence[Any]) -> list[Any] | None:
            answers = []
            for item in items:
                if self.reached.is_set() or item.partition.table is not self._table or not self._when(item):
                    await others([item])
                    answers += await self.store.change([item])
                    continue
                (before,) = await self.store.read([Span(item.partition)])
                answers += await self.store.change([item])
                self._before[item.partition] = before
                self.reached.set()
                if self.lands is None:
                    raise asyncio.CancelledError
                await self.lands.wait()
                self._before.clear()
            return answers

        theirs.hooks["change"] = change
        return theirs

    def seen(self) -> HookedStore:
        others = HookedStore(self.store)

        async def read(spans: Sequence[Span]) -> list[Slice]:
            found = await self.store.read([span._replace(limit=None) for span in spans])
            return [self._cut(span, self._seen(span, part)) for span, part in zip(spans, found, strict=True)]

        async def change(items: Sequence[Any]) -> None:
            for item in items:
                self._before.pop(item.partition, None)

        others.hooks.update(read=read, change=change)
        return others

    def _seen(self, span: Span, found: Slice) -> Slice:
        before = self._before.get(span.partition)
        if before is None:
            return found
        old = {row.key: row.values for row in before.rows if _is_inside(span, row.key)}
        new = {row.key: row.values for row in found.rows}
        columns = span.columns or tuple(span.partition.table.columns)
        if self.near(span):
            self._flags = True
            for key in {**old, **new}:
                # Of a row that was deleted nothing is left, whatever was asked for.
                self._spread.setdefault(key, set()).update(columns if key in new else span.partition.table.columns)
        rows: list[Row] = []
        for key in sorted({**old, **new}):
            shared = self._spread.get(key, set())
            shown: Values = {
                name: value
                for name in columns
                if (value := (new if name in shared else old).get(key, {}).get(name)) is not None
            }
            if shown:
                rows.append(Row(key, shown))
        return Slice(found.flags if self._flags else before.flags, rows, False)

    @staticmethod
    def _cut(span: Span, found: Slice) -> Slice:
        if span.limit is None or len(found.rows) < span.limit:
            return found
        return found._replace(rows=list(found.rows)[: span.limit], more=True)


def _is_inside(span: Span, key: Key) -> bool:
    return (span.first is None or key >= span.first) and (span.last is None or key <= span.last)  # type: ignore[operator]
