"""The SQL, built once for each shape of rows.

Every statement takes many rows in one step. It is not only that a step costs something: around each one the driver
gives the interpreter lock away and has to win it back from a busy event loop. Row by row a thousand rows took
0.3 ms alone and 250 to 700 ms beside a busy loop.
"""

from __future__ import annotations

from functools import lru_cache

from angelhair.engine.packed import LENGTH_BITS
from angelhair.engine.store import Table
from angelhair.stores.sqlite.layout import EXPIRES, KEY, PARTITION, flags_of, quoted

LENGTHS = (256, 128, 64, 32, 16, 8, 4, 2, 1)
"""The numbers of rows for which a statement is prepared; a longer list is cut into these. The longest keeps the text
below the 16 KiB that the driver's statement cache takes, and its parameters far below SQLite's 32,766."""

SHAPES = 4096
"""Texts remembered; there are about as many shapes as places in the engine that build rows."""


def lengths(count: int) -> list[int]:
    """Cuts `count` rows into lengths that have a statement."""
    cut = []
    for length in LENGTHS:
        whole, count = divmod(count, length)
        cut += [length] * whole
    return cut


def _lists(width: int, length: int) -> str:
    return ",".join(["(" + ",".join("?" * width) + ")"] * length)


@lru_cache(SHAPES)
def upsert(table: Table, columns: tuple[str, ...], expiring: bool, length: int) -> str:
    """Per row: partition, key, the columns, and the expiry if expiring; at the end now.

    A row that has expired but was not swept yet must not lend its old columns to the new one.
    """
    now = (2 + len(columns) + expiring) * length + 1
    names = [PARTITION, KEY, *map(quoted, columns)] + [EXPIRES] * expiring
    return (
        f"INSERT INTO {quoted(table.name)} ({','.join(names)}) VALUES {_lists(len(names), length)} "
        f"{_on_conflict(table, columns, now)}"
    )


def _on_conflict(table: Table, columns: tuple[str, ...], now: int) -> str:
    """`now`: which parameter it is. It is named even where no column needs it, so that every shape takes the same."""
    effects = [f"{quoted(column)}=excluded.{quoted(column)}" for column in columns]
    effects += [
        f"{quoted(column)}=iif({EXPIRES}<=?{now},NULL,{quoted(column)})"
        for column in table.columns
        if column not in columns
    ]
    effects.append(f"{EXPIRES}=excluded.{EXPIRES}")
    return f"ON CONFLICT ({PARTITION},{KEY}) DO UPDATE SET {','.join(effects)} WHERE ?{now} IS NOT NULL"


@lru_cache(SHAPES)
def unexpected(table: Table, columns: tuple[str, ...], length: int) -> str:
    """1 if a row is not as expected. Per row: key and the columns; at the end the partition and now.

    The outer join makes every column of an absent row NULL, as the contract has it, and IS makes NULL equal NULL.
    """
    partition = (1 + len(columns)) * length + 1
    names = ",".join([KEY, *map(quoted, columns)])
    tests = " AND ".join(f"present.{quoted(column)} IS expected.{quoted(column)}" for column in columns)
    return (
        f"WITH expected ({names}) AS (VALUES {_lists(1 + len(columns), length)}) "
        f"SELECT EXISTS (SELECT 1 FROM expected LEFT JOIN {quoted(table.name)} AS present "
        f"ON present.{PARTITION}=?{partition} AND present.{KEY}=expected.{KEY} "
        f"AND (present.{EXPIRES} IS NULL OR present.{EXPIRES}>?{partition + 1}) WHERE NOT ({tests}))"
    )


@lru_cache(SHAPES)
def unexpected_in_run(table: Table, columns: tuple[str, ...], absent: bool) -> str:
    """1 if a row of a run of keys is not as expected. The partition, the first and the last key, now; then the columns'
    values and how many rows there are, or, if all of it is expected to be `absent`, nothing."""
    rows = (
        f"FROM {quoted(table.name)} WHERE {PARTITION}=?1 AND {KEY} BETWEEN ?2 AND ?3 "
        f"AND ({EXPIRES} IS NULL OR {EXPIRES}>?4)"
    )
    if absent:
        tests = " AND ".join(f"{quoted(column)} IS NULL" for column in columns)
        return f"SELECT EXISTS (SELECT 1 {rows} AND NOT ({tests}))"
    tests = " AND ".join(f"{quoted(column)} IS ?{number}" for number, column in enumerate(columns, 5))
    return f"SELECT (SELECT count(*) {rows} AND {tests}) <> ?{5 + len(columns)}"


@lru_cache(SHAPES)
def upsert_run(table: Table, columns: tuple[str, ...]) -> str:
    """Sets the same columns in a run of rows, there or not. The partition, the first and the last key, now; then the
    columns and the expiry."""
    values = ",".join(f"?{number}" for number in range(5, 5 + len(columns) + 1))
    return (
        "WITH RECURSIVE run (number) AS (VALUES (?2) UNION ALL SELECT number+1 FROM run WHERE number<?3) "
        f"INSERT INTO {quoted(table.name)} ({','.join([PARTITION, KEY, *map(quoted, columns), EXPIRES])}) "
        f"SELECT ?1,number,{values} FROM run WHERE true {_on_conflict(table, columns, 4)}"
    )


@lru_cache(SHAPES)
def upsert_column(table: Table, column: str, same: tuple[str, ...], packed: bool) -> str:
    """Sets one column from an array, and others alike, in rows that follow each other. The partition, the first key,
    the array, of packed blobs what they are cut from and where that begins, now; then the other columns and the
    expiry."""
    columns = (column, *same)
    value = f"substr(?4,(value>>{LENGTH_BITS})-?5+1,value&{(1 << LENGTH_BITS) - 1})" if packed else "value"
    values = ",".join(f"?{number}" for number in range(7, 7 + len(same) + 1))
    return (
        f"INSERT INTO {quoted(table.name)} ({','.join([PARTITION, KEY, *map(quoted, columns), EXPIRES])}) "
        f"SELECT ?1,?2+rowid-1,{value},{values} FROM carray(?3) WHERE true {_on_conflict(table, columns, 6)}"
    )


@lru_cache(SHAPES)
def update_run(table: Table, columns: tuple[str, ...]) -> str:
    """Sets the same columns in a run of rows that are all there. The partition, the first and the last key; then the
    columns and the expiry."""
    effects = ",".join(f"{quoted(column)}=?{number}" for number, column in enumerate(columns, 4))
    return (
        f"UPDATE {quoted(table.name)} SET {effects},{EXPIRES}=?{4 + len(columns)} "
        f"WHERE {PARTITION}=?1 AND {KEY} BETWEEN ?2 AND ?3"
    )


@lru_cache(SHAPES)
def delete(table: Table, length: int) -> str:
    """The keys, then the partition."""
    return (
        f"DELETE FROM {quoted(table.name)} WHERE {KEY} IN ({','.join('?' * length)}) AND {PARTITION}=?{length + 1}"
    )


@lru_cache(SHAPES)
def unexpected_flags(table: Table, flags: tuple[str, ...]) -> str:
    """1 if a flag is not as expected. The flags, then the partition."""
    tests = " AND ".join(f"present.{quoted(flag)} IS ?{number}" for number, flag in enumerate(flags, 1))
    return (
        f"SELECT EXISTS (SELECT 1 FROM (SELECT 1) LEFT JOIN {flags_of(table)} AS present "
        f"ON present.{PARTITION}=?{len(flags) + 1} WHERE NOT ({tests}))"
    )


@lru_cache(SHAPES)
def upsert_flags(table: Table, flags: tuple[str, ...]) -> str:
    """The partition, then the flags."""
    effects = ",".join(f"{quoted(flag)}=excluded.{quoted(flag)}" for flag in flags)
    return (
        f"INSERT INTO {flags_of(table)} ({','.join([PARTITION, *map(quoted, flags)])}) "
        f"VALUES {_lists(1 + len(flags), 1)} ON CONFLICT ({PARTITION}) DO UPDATE SET {effects}"
    )


@lru_cache(SHAPES)
def drop(table: Table) -> tuple[str, ...]:
    """Each takes the partition."""
    names = [quoted(table.name)] + [flags_of(table)] * bool(table.flags)
    return tuple(f"DELETE FROM {name} WHERE {PARTITION}=?" for name in names)


@lru_cache(SHAPES)
def sweep(table: Table) -> str:
    """Now, and how many rows at most."""
    return (
        f"DELETE FROM {quoted(table.name)} WHERE ({PARTITION},{KEY}) IN "
        f"(SELECT {PARTITION},{KEY} FROM {quoted(table.name)} WHERE {EXPIRES}<=? LIMIT ?)"
    )


@lru_cache(SHAPES)
def span(table: Table, columns: tuple[str, ...], from_key: str, to_key: bool) -> str:
    """The partition, the first key unless `from_key` is empty, the last if `to_key`; now, and the limit.

    The key comes last in what is found, so that the columns stand at their own places.
    """
    tests = f"{PARTITION}=?"
    if from_key:
        tests += f" AND {KEY}{from_key}?"
    if to_key:
        tests += f" AND {KEY}<=?"
    return (
        f"SELECT {','.join([*map(quoted, columns), KEY])} FROM {quoted(table.name)} WHERE {tests} "
        f"AND ({EXPIRES} IS NULL OR {EXPIRES}>?) ORDER BY {KEY} LIMIT ?"
    )


@lru_cache(SHAPES)
def named(table: Table, length: int) -> str:
    """The keys, then the partition and now. The key comes last in what is found."""
    return (
        f"SELECT {','.join([*map(quoted, table.columns), KEY])} FROM {quoted(table.name)} "
        f"WHERE {KEY} IN ({','.join('?' * length)}) AND {PARTITION}=?{length + 1} "
        f"AND ({EXPIRES} IS NULL OR {EXPIRES}>?{length + 2})"
    )


@lru_cache(SHAPES)
def flags(table: Table) -> str:
    """The partition."""
    return f"SELECT {','.join(map(quoted, table.flags))} FROM {flags_of(table)} WHERE {PARTITION}=?"
