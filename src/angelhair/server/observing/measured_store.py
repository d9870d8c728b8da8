"""A store that tells an observer what it is asked, how long it takes and what comes of it.

As `stores/counting.py`, for servers. Leases are seen here too: who takes one, loses one or gives one back does it by a
conditional write, and the engine need not know that it is watched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from time import perf_counter
from typing import TypeVar, cast

from angelhair.clock import Clock
from angelhair.engine.schema import LEASES
from angelhair.engine.store import (
    Applied,
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
from angelhair.errors import StoreError
from angelhair.server.observing.observer import Observer

R = TypeVar("R")


class MeasuredStore:
    """Wraps any store. What it says is what the wrapped one said."""

    def __init__(self, store: Store, observer: Observer, clock: Clock) -> None:
        self._store = store
        self.joins = joining(store) is not None
        self._observer = observer
        self._clock = clock

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        observer = self._observer
        for span in spans:
            observer.store_operation("read", span.partition.table.name)
        slices = await self._timed("read", self._store.read(spans))
        for span, found in zip(spans, slices, strict=True):
            observer.store_rows("read", span.partition.table.name, len(found.rows))
        return slices

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        for write in writes:
            self._observer.store_operation("write", write.partition.table.name, 1, len(write.rows))
        outcomes = await self._timed("write", self._store.write(writes))
        self._errors("write", outcomes)
        return outcomes

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        observer = self._observer
        for change in changes:
            observer.store_operation("change", change.partition.table.name, 1, len(change.rows))
        outcomes = await self._timed("change", self._store.change(changes))
        for change, outcome in zip(changes, outcomes, strict=True):
            if isinstance(outcome, Refused):
                observer.store_refused(change.partition.table.name)
            if change.partition.table is LEASES:
                self._lease(change, outcome)
        self._errors("change", outcomes)
        return outcomes

    async def together(self, wanted: Together) -> Joined:
        """Counted as what it stands for."""
        observer = self._observer
        change, writes, spans = wanted
        observer.store_operation("change", change.partition.table.name, 1, len(change.rows))
        for write in writes:
            observer.store_operation("write", write.partition.table.name, 1, len(write.rows))
        for span in spans:
            observer.store_operation("read", span.partition.table.name)
        joined = await self._timed("together", cast("JoiningStore", self._store).together(wanted))
        for span, found in zip(spans, joined.slices, strict=False):
            observer.store_rows("read", span.partition.table.name, len(found.rows))
        if isinstance(joined.outcome, Refused):
            observer.store_refused(change.partition.table.name)
        self._errors("together", [joined.outcome])
        return joined

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        for partition in partitions:
            self._observer.store_operation("drop", partition.table.name)
        outcomes = await self._timed("drop", self._store.drop(partitions))
        self._errors("drop", outcomes)
        return outcomes

    async def time_ms(self) -> int:
        before = self._clock.now()
        store_ms = await self._timed("time", self._store.time_ms())
        after = self._clock.now()
        # The store looked at its clock somewhere between the two; halfway is the best guess.
        self._observer.clock_skew((store_ms - (before.wall_ms + after.wall_ms) / 2) / 1000)
        return store_ms

    async def close(self) -> None:
        await self._store.close()

    async def _timed(self, operation: str, call: Awaitable[R]) -> R:
        begun = perf_counter()
        try:
            return await call
        except Exception as error:
            self._observer.store_error(operation, error)
            raise
        finally:
            self._observer.store_call(operation, perf_counter() - begun)

    def _errors(self, operation: str, outcomes: Sequence[object]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, StoreError):
                self._observer.store_error(operation, outcome)

    def _lease(self, change: Change, outcome: ChangeOutcome) -> None:
        (row,) = change.rows
        wanted = row.values or {}
        if isinstance(outcome, Refused):
            found = outcome.rows.get(row.key, {})
            # If it stands there already, an earlier try had landed unheard of: as good as applied.
            if any(found.get(name) != wanted.get(name) for name in ("holder", "fence", "beat")):
                if row.expect.get("holder") == wanted.get("holder") and row.expect.get("fence") == wanted.get("fence"):
                    self._observer.lease_change("lost")
                return
        elif not isinstance(outcome, Applied):
            return
        if wanted.get("holder") == "":
            self._observer.lease_change("released")
        elif wanted.get("fence") != row.expect.get("fence"):
            self._observer.lease_change("taken")
