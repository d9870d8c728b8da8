"""What the writer does inside one transaction, for the calls of everybody who was waiting.

The calls of one transaction were all under way at the same time, so they may be done in any order: the rows of all
blind writes are joined by their shape first, then the changes come one by one, then the drops. A change tests all its
expectations before its first effect, so a refused one leaves nothing to take back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import apsw

from angelhair.engine.mistakes import all_blobs
from angelhair.engine.packed import Packed
from angelhair.engine.store import (
    APPLIED,
    Applied,
    Change,
    Partition,
    RowChange,
    RowsInARow,
    Table,
    Values,
    Write,
)
from angelhair.stores.sqlite import reading, statements
from angelhair.stores.sqlite.runs import runs_among

SWEEP_ROWS = 500
"""Expired rows taken away by one transaction: a few milliseconds."""


NOTHING = b"\0"
"""What blobs without a byte are cut from."""


class Unexpected(NamedTuple):
    """A change was refused. The rows of the answer are read later, outside the transaction."""


UNEXPECTED = Unexpected()


class Call(NamedTuple):
    """One call of a verb."""

    verb: Literal["write", "change", "drop", "together"]
    items: Sequence[Any]
    rows: int


Outcomes = list[Any]
"""One for each item: None, Applied, Unexpected, or what was read together with a change."""


def apply(connection: apsw.Connection, calls: Sequence[Call], now_ms: int) -> list[Outcomes]:
    """Does all calls inside the open transaction. Raises when one cannot be done; then the caller rolls back."""
    outcomes: list[Outcomes] = [[None] * len(call.items) for call in calls]
    effects = _Effects(now_ms)
    for call, answers in zip(calls, outcomes, strict=True):
        if call.verb == "write":
            for item in call.items:
                effects.write(item)
        elif call.verb == "together":
            answers[:] = [_change(connection, wanted.change, now_ms) for wanted in call.items]
            for wanted, answer in zip(call.items, answers, strict=True):
                for item in wanted.writes if answer is not UNEXPECTED else ():
                    effects.write(item)
    effects.run(connection)
    for call, answers in zip(calls, outcomes, strict=True):
        if call.verb == "change":
            answers[:] = [_change(connection, change, now_ms) for change in call.items]
    for call in calls:
        if call.verb == "drop":
            for partition in call.items:
                _drop(connection, partition)
    for call, answers in zip(calls, outcomes, strict=True):
        if call.verb == "together":
            answers[:] = [
                answer if answer is UNEXPECTED else [reading.whole(connection, span, now_ms) for span in wanted.spans]
                for wanted, answer in zip(call.items, answers, strict=True)
            ]
    return outcomes


def sweep(connection: apsw.Connection, tables: Sequence[Table], now_ms: int) -> bool:
    """Takes some expired rows away; true if there may be more."""
    left = SWEEP_ROWS
    for table in tables:
        connection.execute(statements.sweep(table), (now_ms, left))
        left -= connection.changes()
        if left <= 0:
            return True
    return False


class _Effects:
    """Rows to be set, collected by shape, so that one statement sets many."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._shapes: dict[tuple[Table, tuple[str, ...], bool], list[Any]] = {}
        self._columns: list[tuple[Partition, RowsInARow, int | None]] = []

    def write(self, write: Write) -> None:
        table, partition = write.partition
        expires_ms = None if write.ttl_seconds is None else self._now_ms + write.ttl_seconds * 1000
        if isinstance(write.rows, RowsInARow) and all_blobs(write.rows.different):
            self._columns.append((write.partition, write.rows, expires_ms))
            return
        for key, values in write.rows:
            self.set(table, partition, key, values, expires_ms)

    def set(self, table: Table, partition: str, key: Any, values: Values, expires_ms: int | None) -> None:
        if not values:
            return
        shape = (table, tuple(values), expires_ms is not None)
        parameters = self._shapes.get(shape)
        if parameters is None:
            parameters = self._shapes[shape] = []
        parameters += (partition, key, *values.values())
        if expires_ms is not None:
            parameters.append(expires_ms)

    def run(self, connection: apsw.Connection) -> None:
        for (table, columns, expiring), parameters in self._shapes.items():
            width = 2 + len(columns) + expiring
            start = 0
            for length in statements.lengths(len(parameters) // width):
                end = start + length * width
                connection.execute(
                    statements.upsert(table, columns, expiring, length), (*parameters[start:end], self._now_ms)
                )
                start = end
        for (table, partition), rows, expires_ms in self._columns:
            connection.execute(
                statements.upsert_column(table, rows.column, tuple(rows.same), isinstance(rows.different, Packed)),
                (partition, rows.first, *_array(rows.different), self._now_ms, *rows.same.values(), expires_ms),
            )


def _array(blobs: Sequence[Any]) -> tuple[Any, ...]:
    """An array for SQLite. Of packed ones their pieces, what they are cut from, and where that begins: nothing at all
    would be NULL there."""
    if not isinstance(blobs, Packed):
        return apsw.carray(tuple(blobs)), None, None
    begin, data = blobs.stretch()
    return apsw.carray(blobs.pieces, flags=apsw.SQLITE_CARRAY_INT64), data or NOTHING, begin


def _change(connection: apsw.Connection, change: Change, now_ms: int) -> Applied | Unexpected:
    table, partition = change.partition
    if change.expect_flags and connection.execute(
        statements.unexpected_flags(table, tuple(change.expect_flags)), (*change.expect_flags.values(), partition)
    ).get:
        return UNEXPECTED
    runs, single = runs_among(change.rows)
    if not all(run.is_as_expected(connection, change.partition, now_ms) for run in runs):
        return UNEXPECTED
    if single and not _rows_as_expected(connection, change.partition, single, now_ms):
        return UNEXPECTED
    expires_ms = None if change.ttl_seconds is None else now_ms + change.ttl_seconds * 1000
    for run in runs:
        run.set(connection, change.partition, expires_ms, now_ms)
    effects = _Effects(now_ms)
    deleted = []
    for key, _, values in single:
        if values is None:
            deleted.append(key)
        else:
            effects.set(table, partition, key, values, expires_ms)
    effects.run(connection)
    start = 0
    for length in statements.lengths(len(deleted)):
        connection.execute(statements.delete(table, length), (*deleted[start : start + length], partition))
        start += length
    if change.set_flags:
        connection.execute(
            statements.upsert_flags(table, tuple(change.set_flags)), (partition, *change.set_flags.values())
        )
    return APPLIED


def _rows_as_expected(
    connection: apsw.Connection, place: Partition, rows: Sequence[RowChange], now_ms: int
) -> bool:
    table, partition = place
    shapes: dict[tuple[str, ...], list[Any]] = {}
    for key, expect, _ in rows:
        if expect:
            shapes.setdefault(tuple(expect), []).extend((key, *expect.values()))
    for columns, parameters in shapes.items():
        width = 1 + len(columns)
        start = 0
        for length in statements.lengths(len(parameters) // width):
            end = start + length * width
            if connection.execute(
                statements.unexpected(table, columns, length), (*parameters[start:end], partition, now_ms)
            ).get:
                return False
            start = end
    return True


def _drop(connection: apsw.Connection, partition: Partition) -> None:
    for statement in statements.drop(partition.table):
        connection.execute(statement, (partition.key,))
