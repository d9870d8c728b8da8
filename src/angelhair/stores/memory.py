"""The reference reading of the port: rows in dictionaries, gone when the process ends.

It is written to be read. Where the contract leaves a store room, this one takes the meaner choice, so that an engine
which works here does not lean on a kindness that another store withholds:

 - columns that are None are left out of what is read (ask with `.get`);
 - a row whose columns are all None is not there;
 - `more` is true whenever the limit was reached, also when nothing follows;
 - a programming mistake (a column that the table does not have, a blind write to a conditional table) raises
   `ValueError` before anything is changed.

No verb ever waits, so each one is an instant: that makes every change atomic.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence

from angelhair.engine.mistakes import check_change, check_span, check_write
from angelhair.engine.store import (
    APPLIED,
    Change,
    ChangeOutcome,
    Joined,
    Key,
    Partition,
    Refused,
    Row,
    Slice,
    Span,
    Together,
    Value,
    Values,
    Write,
    WriteOutcome,
)


class _Contents:
    """One partition: its flags, its rows by key, and the keys in order."""

    def __init__(self) -> None:
        self.flags: dict[str, Value] = {}
        self.rows: dict[Key, dict[str, Value]] = {}
        self.order: list[Key] = []
        self.expiry_ms: dict[Key, int] = {}

    def set(self, key: Key, values: Values, expires_ms: int | None) -> None:
        if not values:
            return
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = {}
            insort(self.order, key)
        _merge(row, values)
        self.expiry_ms.pop(key, None)
        if expires_ms is not None:
            self.expiry_ms[key] = expires_ms
        if not row:
            self.delete(key)

    def delete(self, key: Key) -> None:
        if key in self.rows:
            del self.rows[key]
            del self.order[bisect_left(self.order, key)]
            self.expiry_ms.pop(key, None)

    def expire(self, now_ms: int) -> None:
        for key in [key for key, expires_ms in self.expiry_ms.items() if expires_ms <= now_ms]:
            self.delete(key)

    def between(self, first: Key | None, last: Key | None) -> list[Key]:
        start = 0 if first is None else bisect_left(self.order, first)
        end = len(self.order) if last is None else bisect_right(self.order, last)
        return self.order[start:end]

    def equals(self, present: Values, expected: Values) -> bool:
        return all(present.get(column) == value for column, value in expected.items())


class MemoryStore:
    def __init__(self, clock_ms: Callable[[], int], joins: bool = False) -> None:
        self._clock_ms = clock_ms
        self.joins = joins
        """The engine's two ways of putting can be read against this store, each by itself."""
        self._partitions: dict[Partition, _Contents] = {}

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        for span in spans:
            check_span(span)
        return [self._read(span) for span in spans]

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        for write in writes:
            check_write(write)
        for write in writes:
            contents = self._contents(write.partition)
            expires_ms = self._expires_ms(write.ttl_seconds)
            for row in write.rows:
                contents.set(row.key, row.values, expires_ms)
        return [None for _ in writes]

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        for change in changes:
            check_change(change)
        return [self._change(change) for change in changes]

    async def together(self, wanted: Together) -> Joined:
        for write in wanted.writes:
            check_write(write)
        for span in wanted.spans:
            check_span(span)
        (outcome,) = await self.change([wanted.change])
        if isinstance(outcome, Refused):
            return Joined(outcome)
        await self.write(wanted.writes)
        return Joined(outcome, await self.read(wanted.spans))

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        for partition in partitions:
            self._partitions.pop(partition, None)
        return [None for _ in partitions]

    async def time_ms(self) -> int:
        return self._clock_ms()

    async def close(self) -> None:
        pass

    def _read(self, span: Span) -> Slice:
        contents = self._contents(span.partition)
        keys = contents.between(span.first, span.last)[: span.limit]
        rows = [Row(key, _wanted(contents.rows[key], span.columns)) for key in keys]
        return Slice(dict(contents.flags), rows, span.limit is not None and len(rows) == span.limit)

    def _change(self, change: Change) -> ChangeOutcome:
        contents = self._contents(change.partition)
        holds = contents.equals(contents.flags, change.expect_flags) and all(
            contents.equals(contents.rows.get(row.key, {}), row.expect) for row in change.rows
        )
        if not holds:
            named = {row.key for row in change.rows} & contents.rows.keys()
            return Refused(dict(contents.flags), {key: dict(contents.rows[key]) for key in named})
        expires_ms = self._expires_ms(change.ttl_seconds)
        for row in change.rows:
            if row.values is None:
                contents.delete(row.key)
            else:
                contents.set(row.key, row.values, expires_ms)
        _merge(contents.flags, change.set_flags)
        return APPLIED

    def _contents(self, partition: Partition) -> _Contents:
        contents = self._partitions.setdefault(partition, _Contents())
        contents.expire(self._clock_ms())
        return contents

    def _expires_ms(self, ttl_seconds: int | None) -> int | None:
        return None if ttl_seconds is None else self._clock_ms() + ttl_seconds * 1000


def _merge(present: dict[str, Value], values: Values) -> None:
    """Sets columns; None unsets them."""
    for column, value in values.items():
        if value is None:
            present.pop(column, None)
        else:
            present[column] = value


def _wanted(values: Values, columns: tuple[str, ...] | None) -> dict[str, Value]:
    return {column: value for column, value in values.items() if columns is None or column in columns}
