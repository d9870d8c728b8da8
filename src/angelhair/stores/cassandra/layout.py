"""How the engine's tables look in CQL, and what may be asked of them.

    CREATE TABLE <name> (partition text, key bigint|text, <flags> static, <columns>, PRIMARY KEY (partition, key))

Two columns are the store's own. Conditional tables have `nothing` (and `no_flag`, if they have flags), which are never
set: a change that expects nothing still has to be conditional, so it is made on `nothing = null`; a row that is only
tested needs something to assign, so it sets `nothing` to null. Plain tables have the static `written`, set with every
batch: its write time is the newest of the partition, which a drop must exceed (R14), found without reading the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from angelhair.engine.store import Change, Key, Partition, Span, Table, Values, Write

NEVER_SET = "nothing"
NEVER_SET_FLAG = "no_flag"
WRITTEN = "written"
OWN_COLUMNS = frozenset({"partition", "key", NEVER_SET, NEVER_SET_FLAG, WRITTEN})

CQL_TYPES: Mapping[type, str] = {int: "bigint", str: "text", bytes: "blob"}

INTEGER_LEAST = -(2**63)
INTEGER_MOST = 2**63 - 1

TTL_MOST_SECONDS = 20 * 365 * 86_400
"""Cassandra's own bound. What should live longer is dropped by the engine, not by a TTL (R9)."""


def column_types(table: Table) -> dict[str, str]:
    """Every column beside the primary key, with its CQL type."""
    clash = OWN_COLUMNS & (table.columns.keys() | table.flags.keys())
    if clash:
        raise ValueError(f"table {table.name} uses names that this store keeps for itself: {', '.join(sorted(clash))}")
    types = {name: f"{CQL_TYPES[kind]} static" for name, kind in table.flags.items()}
    types |= {name: CQL_TYPES[kind] for name, kind in table.columns.items()}
    if table.conditional:
        types[NEVER_SET] = "boolean"
        if table.flags:
            types[NEVER_SET_FLAG] = "boolean static"
    else:
        types[WRITTEN] = "boolean static"
    return types


def check_write(write: Write) -> None:
    table = write.partition.table
    if table.conditional:
        raise ValueError(f"table {table.name} is only ever changed conditionally: a blind write would shadow changes")
    _check_ttl(write.ttl_seconds)
    for row in write.rows:
        _check_key(table, row.key)
        _check_values(table, table.columns, row.values)


def check_change(change: Change) -> None:
    table = change.partition.table
    if not table.conditional:
        raise ValueError(f"table {table.name} is written blindly: a condition on it would prove nothing")
    _check_ttl(change.ttl_seconds)
    _check_values(table, table.flags, change.expect_flags)
    _check_values(table, table.flags, change.set_flags)
    for row in change.rows:
        _check_key(table, row.key)
        _check_values(table, table.columns, row.expect)
        _check_values(table, table.columns, row.values or {})
    if len({row.key for row in change.rows}) < len(change.rows):
        raise ValueError(f"a change of table {table.name} names a key twice: which effect should stay?")


def check_span(span: Span) -> None:
    table = span.partition.table
    if span.limit is not None and span.limit < 1:
        raise ValueError(f"a limit of {span.limit} rows asks for nothing")
    for end in (span.first, span.last):
        if end is not None:
            _check_key(table, end)
    for column in span.columns or ():
        if column not in table.columns:
            raise ValueError(f"table {table.name} has no column {column!r}")


def present(names: tuple[str, ...], values: tuple[Any, ...]) -> Values:
    """What was read, without the columns that are not set."""
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def in_words(partition: Partition) -> str:
    return f"{partition.table.name}/{partition.key}"


def _check_ttl(ttl_seconds: int | None) -> None:
    if ttl_seconds is not None and not 1 <= ttl_seconds <= TTL_MOST_SECONDS:
        raise ValueError(f"rows cannot live for {ttl_seconds} seconds: 1 to {TTL_MOST_SECONDS} is possible")


def _check_key(table: Table, key: Key) -> None:
    if type(key) is not table.key:
        raise ValueError(f"the keys of table {table.name} are {table.key.__name__}, not {key!r}")
    _check_range(table, key)


def _check_values(table: Table, columns: Mapping[str, type], values: Values) -> None:
    for column, value in values.items():
        if value is None:
            if column not in columns:
                raise ValueError(f"table {table.name} has no column or flag {column!r}")
        elif type(value) is not columns.get(column):
            if column not in columns:
                raise ValueError(f"table {table.name} has no column or flag {column!r}")
            raise ValueError(f"{table.name}.{column} holds {columns[column].__name__}, not {value!r}")
        else:
            _check_range(table, value)


def _check_range(table: Table, value: object) -> None:
    if type(value) is int and not INTEGER_LEAST <= value <= INTEGER_MOST:
        raise ValueError(f"{value} does not fit into the 64 bits of an integer of table {table.name}")
