"""The port's verbs on a SQLite file.

Writing is done by one writer (`writing.py`), in a thread or in a process of its own. Reading is done right here, on the
event loop, with a connection that the write-ahead log keeps from ever waiting for the writer. A thread would be worse:
turning rows into Python objects needs the interpreter lock, so it could not be done beside the loop anyway, and the
driver gives that lock away at every row. A thousand rows take 0.3 ms here; in a thread beside a busy loop they took
250 to 700 ms. Long reads give way after each page. The price is that a page which must come from a slow disk holds the
loop up for that long.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import apsw

from angelhair.clock import Clock, SystemClock
from angelhair.engine.mistakes import check_span
from angelhair.engine.schema import SCHEMA_VERSION, TABLES
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
    Table,
    Together,
    Values,
    Write,
    WriteOutcome,
)
from angelhair.errors import StoreError, Unavailable
from angelhair.stores.sqlite import errors, reading, statements
from angelhair.stores.sqlite.connection import BUSY_TIMEOUT_MS, CHECKPOINT_PAGES, Durability, Place, connect_reader
from angelhair.stores.sqlite.hosting import NoWriter, Writer
from angelhair.stores.sqlite.layout import check
from angelhair.stores.sqlite.threads import WriterThread
from angelhair.stores.sqlite.transactions import UNEXPECTED, Call

PAGE_ROWS = 500
"""Rows read before others get their turn: 0.2 ms of small rows. More than a partition of a small table has."""

READ_ATTEMPTS = 500
READ_RETRY_SECONDS = 0.01
"""A reader is told to come again only while another process recovers the log; 5 seconds, as for a writer."""

T = TypeVar("T")


async def open_store(
    path: str | os.PathLike[str],
    *,
    tables: Sequence[Table] = TABLES,
    version: int = SCHEMA_VERSION,
    clock: Clock | None = None,
    vfs: str | None = None,
    durability: Durability = "full",
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    checkpoint_pages: int = CHECKPOINT_PAGES,
    writer: Literal["thread", "process"] = "thread",
) -> SqliteStore:
    """Opens the file, or creates it. The store belongs to the event loop that opened it.

    A writer in a process of its own is for servers: see `process.py`. `vfs`, a `clock` that is not the system's and a
    `durability` other than "full" are for tests.
    """
    place = Place(os.fspath(path), vfs, durability, busy_timeout_ms, checkpoint_pages)
    started = _writer_process(place, tables, version, clock) if writer == "process" else WriterThread(
        place, tables, version, clock or SystemClock()
    )
    await started.start()
    return SqliteStore(place, started, clock or SystemClock())


async def open_reader(path: str | os.PathLike[str]) -> SqliteStore:
    """Opens a file that is there, to be read; other processes may be writing to it."""
    place = Place(os.fspath(path))
    store = SqliteStore(place, NoWriter(), SystemClock())
    await store.check(SCHEMA_VERSION)
    return store


def _writer_process(place: Place, tables: Sequence[Table], version: int, clock: Clock | None) -> Writer:
    # Only now: it needs what only servers have installed.
    from angelhair.stores.sqlite.process import WriterProcess

    if place.vfs is not None or clock is not None:
        raise ValueError("another process has neither this one's file system nor its clock")
    return WriterProcess(place, tables, version)


class SqliteStore:
    joins = True

    def __init__(self, place: Place, writer: Writer, clock: Clock) -> None:
        self._place = place
        self._writer = writer
        self._clock = clock
        self._reader: apsw.Connection | None = None
        self._closed = False

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        slices = []
        since_turn = 0
        for span in spans:
            check_span(span)
            flags, rows = await self._patiently(self._first_page, span)
            since_turn += len(rows)
            page_rows = len(rows)
            while page_rows == PAGE_ROWS and len(rows) != span.limit:
                await asyncio.sleep(0)
                page = await self._patiently(self._page, span, rows[-1].key, _page_limit(span, len(rows)))
                page_rows = since_turn = len(page)
                rows += page
            slices.append(Slice(flags, rows, len(rows) == span.limit))
            if since_turn >= PAGE_ROWS:
                await asyncio.sleep(0)
                since_turn = 0
        return slices

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        _check_plain(writes)
        outcomes: list[WriteOutcome] = await self._writer.submit(
            Call("write", writes, sum(len(write.rows) for write in writes))
        )
        return outcomes

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        for change in changes:
            _check_conditional(change)
        outcomes = await self._writer.submit(Call("change", changes, sum(len(change.rows) for change in changes)))
        return [
            await self._refusal(change) if outcome is UNEXPECTED else outcome
            for change, outcome in zip(changes, outcomes, strict=True)
        ]

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        outcomes: list[WriteOutcome] = await self._writer.submit(Call("drop", partitions, len(partitions)))
        return outcomes

    async def together(self, wanted: Together) -> Joined:
        _check_conditional(wanted.change)
        _check_plain(wanted.writes)
        rows = len(wanted.change.rows) + sum(len(write.rows) for write in wanted.writes)
        (outcome,) = await self._writer.submit(Call("together", (wanted,), rows))
        if outcome is UNEXPECTED:
            return Joined(await self._refusal(wanted.change))
        return Joined(outcome) if isinstance(outcome, StoreError) else Joined(APPLIED, outcome)

    async def check(self, version: int) -> None:
        """Raises `StoreRefused` unless the file is ours, and of this version."""
        await self._patiently(lambda: check(self._connected(), version))

    async def time_ms(self) -> int:
        return self._clock.now().wall_ms

    async def close(self) -> None:
        self._closed = True
        # The reader first: the last connection to close empties the log, and only the writer's may write.
        self._forget_reader()
        await self._writer.stop()

    async def _refusal(self, change: Change) -> Refused | Unavailable:
        """What stands against a change. Read after the refusal, which the contract allows."""
        try:
            return await self._patiently(self._named, change)
        except Unavailable as error:
            return error

    async def _patiently(self, read: Callable[..., T], *arguments: Any) -> T:
        for _ in range(READ_ATTEMPTS):
            if self._closed:
                raise Unavailable("the store is closed")
            try:
                return read(*arguments)
            except apsw.BusyError:
                await asyncio.sleep(READ_RETRY_SECONDS)
            except apsw.Error as error:
                if errors.is_mistake(error):
                    raise ValueError(str(error)) from error
                if errors.costs_connection(error):
                    self._forget_reader()
                raise errors.before_commit(error) from error
        raise Unavailable("SQLite: another process is recovering the file")

    def _first_page(self, span: Span) -> tuple[Values, list[Row]]:
        table = span.partition.table
        if not table.flags:
            return {}, self._page(span, None, _page_limit(span, 0))
        reader = self._connected()
        reader.execute("BEGIN")  # flags and rows of one instant
        try:
            return reading.flags(reader, span.partition), self._page(span, None, _page_limit(span, 0))
        finally:
            reader.execute("COMMIT")

    def _page(self, span: Span, after: Key | None, limit: int) -> list[Row]:
        return reading.page(self._connected(), span, after, limit, self._clock.now().wall_ms)

    def _named(self, change: Change) -> Refused:
        table, partition = change.partition
        keys = [row.key for row in change.rows]
        now_ms = self._clock.now().wall_ms
        rows: dict[Key, Values] = {}
        reader = self._connected()
        reader.execute("BEGIN")
        try:
            flags = reading.flags(reader, change.partition)
            start = 0
            for length in statements.lengths(len(keys)):
                found: list[Any] = reader.execute(
                    statements.named(table, length), (*keys[start : start + length], partition, now_ms)
                ).fetchall()
                rows.update((record[-1], dict(zip(table.columns, record, strict=False))) for record in found)
                start += length
        finally:
            reader.execute("COMMIT")
        return Refused(flags, rows)

    def _connected(self) -> apsw.Connection:
        if self._reader is None:
            self._reader = connect_reader(self._place)
        return self._reader

    def _forget_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close(force=True)


def _check_plain(writes: Sequence[Write]) -> None:
    for write in writes:
        if write.partition.table.conditional:
            raise ValueError(f"table {write.partition.table.name} is only ever changed conditionally")


def _check_conditional(change: Change) -> None:
    if not change.partition.table.conditional:
        raise ValueError(f"table {change.partition.table.name} is written blindly, never conditionally")


def _page_limit(span: Span, already: int) -> int:
    return PAGE_ROWS if span.limit is None else min(PAGE_ROWS, span.limit - already)
