"""A write that reached one replica of three, as Cassandra shows it (row 19): its sender hears that nobody knows. A read
that asks this replica among others gives the others the columns that it asked for, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from angelhair.engine.store import Key, Partition, Row, Slice, Span, Store, Table, Value, Write
from angelhair.errors import OutcomeUnknown
from tests.attacks.worlds import HookedStore


def dates(span: Span) -> bool:
    """A read of some columns meets the replica."""
    return span.columns is not None


def never(span: Span) -> bool:
    return False


class Minority:
    def __init__(self, store: Store, table: Table, when: Callable[[Write], bool] = lambda write: True) -> None:
        self.store = store
        self.near: Callable[[Span], bool] = never
        """Which reads ask the replica that has it."""
        self._table = table
        self._when = when
        self._there: dict[tuple[Partition, Key], dict[str, Value]] = {}
        self.lands: asyncio.Event | None = None
        """When the writer comes through at last; None: never."""
        self._spread: dict[tuple[Partition, Key], dict[str, Value]] = {}

    def writer(self) -> HookedStore:
        """For who has no luck with its writes into that table."""
        theirs = HookedStore(self.seen())
        theirs.hooks["write"] = self._write
        return theirs

    def seen(self) -> HookedStore:
        """For everybody else."""
        others = HookedStore(self.store)
        others.hooks["read"] = self._read
        return others

    async def _write(self, items: Sequence[Any]) -> list[Any]:
        answers = []
        for item in items:
            if item.partition.table is self._table and self._when(item):
                for row in item.rows:
                    self._there[item.partition, row.key] = dict(row.values)
                if self.lands is None:
                    answers.append(OutcomeUnknown("timed out"))
                else:
                    await self.lands.wait()
                    answers += await self.store.write([item])
            else:
                answers += await self.store.write([item])
        return answers

    async def _read(self, spans: Sequence[Span]) -> list[Slice]:
        return [self._seen(span, found) for span, found in zip(spans, await self.store.read(spans), strict=True)]

    def _seen(self, span: Span, found: Slice) -> Slice:
        rows = {row.key: dict(row.values) for row in found.rows}
        last_found = found.rows[-1].key if found.more else None
        for (partition, key), values in self._there.items():
            if partition != span.partition:
                continue
            inside = (span.first is None or key >= span.first) and (span.last is None or key <= span.last)  # type: ignore[operator]
            if not inside or (last_found is not None and key > last_found):  # type: ignore[operator]
                continue
            if self.near(span):
                wanted = values if span.columns is None else {n: values.get(n) for n in span.columns}
                self._spread.setdefault((partition, key), {}).update(wanted)
            if (shared := self._spread.get((partition, key))) is not None:
                shown = {n: v for n, v in shared.items() if span.columns is None or n in span.columns}
                rows[key] = {**shown, **{n: v for n, v in rows.get(key, {}).items() if v is not None}}
        some = [Row(key, rows[key]) for key in sorted(rows)]
        if span.limit is not None and len(some) >= span.limit:
            return found._replace(rows=some[: span.limit], more=True)
        return found._replace(rows=some)
