"""Mistakes of a store's caller that no store accepts: each raises `ValueError` before anything is sent or changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from angelhair import limits
from angelhair.engine.packed import Packed
from angelhair.engine.store import Change, Key, RowsInARow, Span, Table, Value, Values, Write


def check_span(span: Span) -> None:
    table = span.partition.table
    if span.limit is not None and span.limit < 1:
        raise ValueError(f"a limit of {span.limit} rows asks for nothing")
    for end in (span.first, span.last):
        if end is not None:
            _check_key(table, end)
    if span.columns is not None:
        _check_columns(table, span.columns)


def _check_columns(table: Table, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in table.columns:
            raise ValueError(f"table {table.name} has no column {column!r}")
        if table.columns[column] is bytes and not table.conditional and len(columns) < len(table.columns):
            raise ValueError(f"of table {table.name} {column!r} is read with its whole row, or not at all")


def check_write(write: Write) -> None:
    table = write.partition.table
    if table.conditional:
        raise ValueError(f"table {table.name} is only changed conditionally, and this is a blind write")
    _check_ttl(write.ttl_seconds)
    columns = table.columns
    rows = write.rows
    if isinstance(rows, RowsInARow):
        _check_key(table, rows.first)
        _check_values(table, columns, rows.same)
        if columns.get(rows.column) is bytes and all_blobs(rows.different):
            return
    for key, values in rows:
        _check_key(table, key)
        _check_values(table, columns, values)


def all_blobs(values: Sequence[Value]) -> bool:
    """What a store may take as one array; nothing at all is none."""
    return len(values) > 0 if isinstance(values, Packed) else {*map(type, values)} == {bytes}


def check_change(change: Change) -> None:
    partition, rows, expect_flags, set_flags, ttl_seconds = change
    table = partition.table
    if not table.conditional:
        raise ValueError(f"table {table.name} is only written blindly, and this is a conditional change")
    _check_ttl(ttl_seconds)
    if expect_flags:
        _check_values(table, table.flags, expect_flags)
    if set_flags:
        _check_values(table, table.flags, set_flags)
    columns = table.columns
    for key, expect, values in rows:
        _check_key(table, key)
        _check_values(table, columns, expect)
        if values:
            _check_values(table, columns, values)
    if len(rows) > 1 and len({row.key for row in rows}) < len(rows):
        raise ValueError(f"a change of table {table.name} names a key twice")


def _check_ttl(ttl_seconds: int | None) -> None:
    if ttl_seconds is not None and not 1 <= ttl_seconds <= limits.TTL_MAXIMUM_SECONDS:
        raise ValueError(f"rows cannot live for {ttl_seconds} seconds: 1 to {limits.TTL_MAXIMUM_SECONDS} is possible")


def _check_key(table: Table, key: Key) -> None:
    if key.__class__ is not table.key:
        raise ValueError(f"the keys of table {table.name} are {table.key.__name__}, not {key!r}")
    if key.__class__ is int and not -limits.INTEGER_LIMIT <= key < limits.INTEGER_LIMIT:
        raise ValueError(f"the key {key!r} of table {table.name} does not fit into 64 bits")


def _check_values(table: Table, columns: Mapping[str, type], values: Values) -> None:
    for column, value in values.items():
        if value.__class__ is not columns.get(column):
            _check_value(table, columns, column, value)
        elif value.__class__ is int and not -limits.INTEGER_LIMIT <= value < limits.INTEGER_LIMIT:
            raise ValueError(f"{value!r} in {table.name}.{column} does not fit into 64 bits")


def _check_value(table: Table, columns: Mapping[str, type], column: str, value: Value) -> None:
    if column not in columns:
        raise ValueError(f"table {table.name} has no column or flag {column!r}")
    if value is not None:
        raise ValueError(f"{table.name}.{column} holds {columns[column].__name__}, not {value!r}")
