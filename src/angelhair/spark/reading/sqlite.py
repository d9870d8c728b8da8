"""From the embedded file through ADBC: SQLite's rows become Arrow's columns without passing through Python.

Bodies and states are read one after the other, some buckets at a time, and joined by id in Arrow. SQLite would look up
each state by itself, which takes longer than to read them in their order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from adbc_driver_sqlite import dbapi

from angelhair.engine import places
from angelhair.errors import StoreRefused
from angelhair.spark.columns import RAW, STATE_COLUMNS
from angelhair.spark.planning import Run
from angelhair.spark.reading.joining import joined
from angelhair.stores.sqlite.layout import EXPIRES, KEY, PARTITION, quoted

BATCH_ROWS = 16_384
"""Rows of one Arrow batch: a few megabytes, and few enough batches that each costs nothing to speak of. So many states
are kept in memory at a time, or those of one bucket if it is larger."""

TYPED = {pa.int64(): "0", pa.string(): "''", pa.binary(): "x''"}
"""A value of each type: the driver takes a column's type from what it meets first, and for nothing but NULL it takes
numbers. So the first row is ours, and is taken off again."""

NO_MESSAGE = -1


def read(
    path: str, incarnation: str, bucket_size: int, run: Run, names: Sequence[str], now_ms: int,
    lost: Callable[[int], None],
) -> Iterator[pa.RecordBatch]:
    """All of it of one instant: floor and rows are read in one transaction."""
    check_alone(path)
    states = tuple(name for name in names if name in STATE_COLUMNS)
    bodies = tuple(name for name in names if name not in STATE_COLUMNS)
    with dbapi.connect(f"file:{quote(path)}?mode=ro") as connection, connection.cursor() as cursor:
        floor = _mark(cursor, places.pointers(incarnation, run.lane).key, "floor")
        buckets = run.buckets(bucket_size)
        if floor > buckets.start:
            lost(floor)
        partitions = [places.bodies(incarnation, run.lane, bucket).key for bucket in buckets if bucket >= floor]
        between = (run.first, run.end, now_ms)
        if not states:
            yield from _rows(connection, "bodies", bodies, partitions, between)
            return
        step = max(1, BATCH_ROWS // bucket_size)
        for begin in range(0, len(partitions), step):
            some = partitions[begin : begin + step]
            known = pa.Table.from_batches(
                _rows(connection, "states", ("number", *states), some, between), _schema(("number", *states))
            ).combine_chunks()
            for batch in _rows(connection, "bodies", bodies, some, between):
                yield joined(batch, known, names)


def _rows(
    connection: dbapi.Connection, table: str, names: Sequence[str], partitions: Sequence[str],
    between: tuple[int, int, int],
) -> Iterator[pa.RecordBatch]:
    schema = _schema(names)
    with connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
        cursor.execute(_statement(table, names, len(partitions)), [*partitions, *between])
        for batch in cursor.fetch_record_batch():
            rows = batch.slice(1) if batch.num_rows and batch.column(0)[0].as_py() == NO_MESSAGE else batch
            if rows.num_rows:
                yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def _schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([RAW.field(name) for name in names])


def check_alone(path: str) -> None:
    """The driver here brings its own copy of SQLite. Two copies in one process do not know of each other's locks, and
    when one closes the file the kernel takes the other's away: readers fail, and worse. Tasks have a process of their
    own, so this is for who calls a reader by hand."""
    apsw: Any = sys.modules.get("apsw")
    if apsw is not None and any(open_file.filename == path for open_file in apsw.connections()):
        raise StoreRefused("this process has the file open by another SQLite; read it from another process")


def purged_below(path: str, incarnation: str, lane: int) -> int:
    with dbapi.connect(f"file:{quote(path)}?mode=ro") as connection, connection.cursor() as cursor:
        return _mark(cursor, places.pointers(incarnation, lane).key, "purged")


def _mark(cursor: dbapi.Cursor, partition: str, name: str) -> int:
    cursor.execute(f"SELECT value FROM pointers WHERE {PARTITION}=? AND {KEY}=?", [partition, name])
    found = cursor.fetchone()
    return 0 if found is None else int(found[0])


def _statement(table: str, names: Sequence[str], buckets: int) -> str:
    """The partitions, the first id and the one after the last; now."""
    first_row = ",".join(str(NO_MESSAGE) if name == "number" else TYPED[RAW.field(name).type] for name in names)
    return (
        f"SELECT {first_row} UNION ALL SELECT {','.join(map(_expression, names))} FROM {table} "
        f"WHERE {PARTITION} IN ({','.join(f'?{number}' for number in range(1, buckets + 1))}) "
        f"AND {KEY}>=?{buckets + 1} AND {KEY}<?{buckets + 2} "
        f"AND ({EXPIRES} IS NULL OR {EXPIRES}>?{buckets + 3})"
    )


def _expression(name: str) -> str:
    if name == "number":
        return KEY
    return quoted("body" if name == "changed_body" else name)
