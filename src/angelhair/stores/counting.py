"""A store that counts what it is asked, for tests and benchmarks that state what a message costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import cast

from angelhair.engine.store import (
    Change,
    ChangeOutcome,
    Joined,
    JoiningStore,
    Partition,
    Refused,
    Slice,
    Span,
    Store,
    Together,
    Write,
    WriteOutcome,
    joining,
)


@dataclass(frozen=True, slots=True)
class Counts:
    """What was asked of a store, whatever came of it. Take one before and one after, and subtract."""

    changes: int = 0
    """Conditional changes: one for each item of each call, as each is a round of consensus on Cassandra."""
    changes_refused: int = 0
    rows_changed: int = 0
    """Rows named by conditional changes, those that are only tested included."""
    writes: int = 0
    """Blind writes: one for each item."""
    rows_written: int = 0
    reads: int = 0
    """Spans read, and looks at the store's clock: each is a round trip."""
    rows_read: int = 0
    drops: int = 0
    """Partitions dropped."""

    def __sub__(self, earlier: Counts) -> Counts:
        return Counts(*(mine - theirs for mine, theirs in zip(_values(self), _values(earlier), strict=True)))

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(mine + theirs for mine, theirs in zip(_values(self), _values(other), strict=True)))


_values = attrgetter(*(field.name for field in fields(Counts)))


class CountingStore:
    """Wraps any store. Items count when they are asked, rows read and refusals when they are answered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.joins = joining(store) is not None
        self.counts = Counts()

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        self._count(Counts(reads=len(spans)))
        slices = await self._store.read(spans)
        self._count(Counts(rows_read=sum(len(slice_.rows) for slice_ in slices)))
        return slices

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        self._count(Counts(writes=len(writes), rows_written=sum(len(write.rows) for write in writes)))
        return await self._store.write(writes)

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        self._count(Counts(changes=len(changes), rows_changed=sum(len(change.rows) for change in changes)))
        outcomes = await self._store.change(changes)
        self._count(Counts(changes_refused=sum(isinstance(outcome, Refused) for outcome in outcomes)))
        return outcomes

    async def together(self, wanted: Together) -> Joined:
        """Counts as what it stands for."""
        change, writes, spans = wanted
        self._count(Counts(changes=1, rows_changed=len(change.rows)))
        self._count(Counts(writes=len(writes), rows_written=sum(len(write.rows) for write in writes)))
        self._count(Counts(reads=len(spans)))
        joined = await cast("JoiningStore", self._store).together(wanted)
        self._count(Counts(changes_refused=int(isinstance(joined.outcome, Refused))))
        self._count(Counts(rows_read=sum(len(slice_.rows) for slice_ in joined.slices)))
        return joined

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        self._count(Counts(drops=len(partitions)))
        return await self._store.drop(partitions)

    async def time_ms(self) -> int:
        self._count(Counts(reads=1))
        return await self._store.time_ms()

    async def close(self) -> None:
        await self._store.close()

    def _count(self, more: Counts) -> None:
        self.counts += more
