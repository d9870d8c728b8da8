"""The verbs of the port on Cassandra."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from cassandra.cluster import Cluster, Session
from cassandra.query import BatchStatement, BatchType, PreparedStatement

from angelhair.engine.mistakes import check_change, check_span, check_write
from angelhair.engine.store import (
    APPLIED,
    Change,
    ChangeOutcome,
    Partition,
    Refused,
    Row,
    RowChange,
    Slice,
    Span,
    Values,
    Write,
    WriteOutcome,
)
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.stores.cassandra.bridge import Bridge
from angelhair.stores.cassandra.errors import RequestFailed, change_error, read_error, write_error
from angelhair.stores.cassandra.layout import NEVER_SET, NEVER_SET_FLAG
from angelhair.stores.cassandra.selects import Selects
from angelhair.stores.cassandra.statements import (
    DeleteRow,
    Drop,
    MarkedWriteTime,
    NewestWriteTime,
    Put,
    Shape,
    Statements,
    Time,
    UpdateFlags,
    UpdateRow,
)
from angelhair.stores.cassandra.turns import Turns

READ = "read"
WRITE = "write"
CHANGE = "change"
SERIAL_READ = "serial_read"
"""The execution profiles, which `connect` defines."""

BATCH_ROWS = 500
BATCH_BYTES = 1024 * 1024
"""How much goes into one blind batch, all of one partition. Such batches are exempt from Cassandra's 50 KiB limit up to
half a commit log segment, but beyond this size they only make everyone else on the node wait."""

ROW_OVERHEAD_BYTES = 64
"""Keys, lengths and time stamps of a row, roughly."""

Item = TypeVar("Item")
Result = TypeVar("Result")

Part = tuple[Shape, tuple[Any, ...]]
"""A statement's shape and its parameters."""


class CassandraStore:
    """Made by `connect.open_store`. Belongs to the event loop it was opened on."""

    def __init__(self, cluster: Cluster, session: Session, keyspace: str, warnings: Sequence[str]) -> None:
        self.warnings = list(warnings)
        """What is unsafe about this Cassandra, in words for its operator. Empty when all is well."""
        self._cluster = cluster
        self._bridge = Bridge(session)
        self._statements = Statements(session, keyspace)
        self._selects = Selects(self._bridge, self._statements)
        self._turns = Turns()

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        for span in spans:
            check_span(span)
        slices: list[Slice] = []
        for outcome in await _each(spans, self._read):
            if isinstance(outcome, Unavailable):
                raise outcome
            slices.append(outcome)
        return slices

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        for write in writes:
            check_write(write)
        return await _each(writes, self._write)

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        for change in changes:
            check_change(change)
        return await _each(changes, self._change)

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        return await _each(partitions, self._drop)

    async def time_ms(self) -> int:
        try:
            statement = await self._statements.get(Time())
            page = await self._bridge.execute(statement.bind(()), READ)
        except RequestFailed as failed:
            raise read_error(failed) from failed
        return int(page.rows[0][0])

    async def close(self) -> None:
        await asyncio.to_thread(self._cluster.shutdown)

    async def _read(self, span: Span) -> Slice | Unavailable:
        try:
            return await self._selects.span(span, READ)
        except RequestFailed as failed:
            return read_error(failed)

    async def _write(self, write: Write) -> WriteOutcome:
        outcomes = await _each(list(_chunks(write.rows)), lambda rows: self._write_chunk(write, rows))
        failures = [outcome for outcome in outcomes if outcome is not None]
        if not failures:
            return None
        if len(failures) == len(outcomes) and all(isinstance(failure, Unavailable) for failure in failures):
            return failures[0]
        # Part of it happened: "nothing did" would be a lie even if the failed part provably did not.
        return OutcomeUnknown(str(failures[0]))

    async def _write_chunk(self, write: Write, rows: Sequence[Row]) -> WriteOutcome:
        table, partition = write.partition
        ttl = () if write.ttl_seconds is None else (write.ttl_seconds,)
        parts = [
            (Put(table, tuple(row.values), bool(ttl), index == 0), (*ttl, *row.values.values(), partition, row.key))
            for index, row in enumerate(rows)
        ]
        try:
            await self._bridge.execute(await self._together(parts), WRITE)
        except RequestFailed as failed:
            return write_error(failed)
        return None

    async def _change(self, change: Change) -> ChangeOutcome:
        if not change.set_flags and all(row.values is not None and not row.values for row in change.rows):
            return await self._test(change)
        try:
            statement = await self._together(_conditional_parts(change))
            async with self._turns.of(change.partition):
                page = await self._bridge.execute(statement, CHANGE)
        except RequestFailed as failed:
            return change_error(failed)
        if page.rows[0][0]:
            return APPLIED
        try:
            # The refusal itself shows the conditions' columns only. It is decided by now, so a quorum has what it saw.
            flags, rows = await self._selects.named(change.partition, [row.key for row in change.rows], READ)
        except RequestFailed as failed:
            return read_error(failed)  # it was refused: nothing happened
        return Refused(flags, rows)

    async def _test(self, change: Change) -> ChangeOutcome:
        """A change that sets nothing: a read that takes part in the vote, so that it completes what is undecided."""
        try:
            flags, rows = await self._selects.named(change.partition, [row.key for row in change.rows], SERIAL_READ)
        except RequestFailed as failed:
            return read_error(failed)
        holds = _holds(change.expect_flags, flags) and all(
            _holds(row.expect, rows.get(row.key, {})) for row in change.rows
        )
        return APPLIED if holds else Refused(flags, rows)

    async def _drop(self, partition: Partition) -> WriteOutcome:
        """Deletes with the newest write time found as its time stamp: it covers all that was there and, unlike the
        present time of some clock, nothing that comes after."""
        try:
            newest_microseconds = await self._newest_write_time(partition)
            if newest_microseconds is None:
                return None
        except RequestFailed as failed:
            return read_error(failed)
        try:
            statement = await self._statements.get(Drop(partition.table))
            await self._bridge.execute(statement.bind((newest_microseconds, partition.key)), WRITE)
        except RequestFailed as failed:
            return write_error(failed)
        return None

    async def _newest_write_time(self, partition: Partition) -> int | None:
        table = partition.table
        if not table.conditional:
            marked = await self._statements.get(MarkedWriteTime(table))
            page = await self._bridge.execute(marked.bind((partition.key,)), READ)
            if page.rows and page.rows[0][1] is not None:
                return int(page.rows[0][1])
            # A mark with a TTL may have gone before the rows of an older, longer-lived batch: look at those themselves.
        every_column = await self._statements.get(NewestWriteTime(table, (*table.columns, *table.flags)))
        page = await self._bridge.execute(every_column.bind((partition.key,)), READ)
        return max((int(time) for time in page.rows[0] if time is not None), default=None) if page.rows else None

    async def _together(self, parts: Sequence[Part]) -> Any:
        """One statement, or a batch of several: all of one partition, so all or none."""
        prepared: list[tuple[PreparedStatement, tuple[Any, ...]]] = [
            (await self._statements.get(shape), parameters) for shape, parameters in parts
        ]
        if len(prepared) == 1:
            statement, parameters = prepared[0]
            return statement.bind(parameters)
        batch = BatchStatement(BatchType.UNLOGGED)
        for statement, parameters in prepared:
            batch.add(statement, parameters)
        return batch


def _conditional_parts(change: Change) -> list[Part]:
    """The statements of a change. At least one has a condition, even when nothing is expected: a table that is changed
    by conditional writes and by plain ones is at the mercy of clocks."""
    table, partition = change.partition
    parts: list[Part] = []
    flag_expectations: Values = change.expect_flags
    expects_something = bool(flag_expectations) or any(row.expect for row in change.rows)
    if change.set_flags:
        if not expects_something:
            flag_expectations = {NEVER_SET_FLAG: None}
        shape = UpdateFlags(table, tuple(change.set_flags), tuple(flag_expectations))
        parts.append((shape, (*change.set_flags.values(), partition, *flag_expectations.values())))
        flag_expectations = {}
    elif not expects_something:
        flag_expectations = {NEVER_SET: None}
    for row in change.rows:
        # Flags that are expected and not set ride on the first row: a statement of their own would have to set one.
        expected = {**row.expect, **flag_expectations}
        flag_expectations = {}
        if row.values or row.values is None or expected:
            parts.append(_row_part(change, row, expected))
    return parts


def _row_part(change: Change, row: RowChange, expected: Values) -> Part:
    table, partition = change.partition
    condition = tuple(expected.values())
    if row.values is None:
        return DeleteRow(table, tuple(expected)), (partition, row.key, *condition)
    if not row.values:
        return UpdateRow(table, (NEVER_SET,), tuple(expected), False), (None, partition, row.key, *condition)
    ttl = () if change.ttl_seconds is None else (change.ttl_seconds,)
    shape = UpdateRow(table, tuple(row.values), tuple(expected), bool(ttl))
    return shape, (*ttl, *row.values.values(), partition, row.key, *condition)


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Cuts rows into batches; rows that set nothing are left out."""
    chunk: list[Row] = []
    chunk_bytes = 0
    for row in rows:
        if not row.values:
            continue
        row_bytes = ROW_OVERHEAD_BYTES + sum(
            len(value) for value in row.values.values() if isinstance(value, bytes | str)
        )
        if chunk and (len(chunk) == BATCH_ROWS or chunk_bytes + row_bytes > BATCH_BYTES):
            yield chunk
            chunk, chunk_bytes = [], 0
        chunk.append(row)
        chunk_bytes += row_bytes
    if chunk:
        yield chunk


def _holds(expected: Values, found: Values) -> bool:
    return all(found.get(name) == value for name, value in expected.items())


async def _each(items: Sequence[Item], work: Callable[[Item], Awaitable[Result]]) -> list[Result]:
    """Works on all items at the same time. `work` returns its errors; what it raises is a mistake in this program."""
    if len(items) == 1:
        return [await work(items[0])]
    return list(await asyncio.gather(*(work(item) for item in items)))
