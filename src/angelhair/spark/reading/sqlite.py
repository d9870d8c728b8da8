"""From the embedded file through ADBC: SQLite's rows become Arrow's columns without passing through Python."""

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
from angelhair.stores.sqlite.layout import EXPIRES, KEY, PARTITION, quoted

BATCH_ROWS = 16_384
"""Rows of one Arrow batch: a few megabytes, and few enough batches that each costs nothing to speak of."""

TYPED = {pa.int64(): "0", pa.string(): "''", pa.binary(): "x''"}
"""A value of each type: the driver takes a column's type from what it meets first, and for nothing but NULL it takes
numbers. So the first row is ours, and is taken off again."""

NO_MESSAGE = -1


def read(
    path: str, incarnation: str, bucket_size: int, run: Run, names: Sequence[str], now_ms: int,
    lost: Callable[[int], None],
) -> Iterator[pa.RecordBatch]:
    """All of it of one instant: floor and rows are read in one transaction."""
    _check_alone(path)
    schema = pa.schema([RAW.field(name) for name in names])
    with dbapi.connect(f"file:{quote(path)}?mode=ro") as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
        floor = _mark(cursor, places.pointers(incarnation, run.lane).key, "floor")
        buckets = run.buckets(bucket_size)
        if floor > buckets.start:
            lost(floor)
        partitions = [places.bodies(incarnation, run.lane, bucket).key for bucket in buckets if bucket >= floor]
        cursor.execute(_statement(names, len(partitions)), [*partitions, run.first, run.end, now_ms])
        for batch in cursor.fetch_record_batch():
            rows = batch.slice(1) if batch.num_rows and batch.column(0)[0].as_py() == NO_MESSAGE else batch
            if rows.num_rows:
                yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def _check_alone(path: str) -> None:
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


def _statement(names: Sequence[str], buckets: int) -> str:
    """The partitions, the first id and the one after the last; now."""
    first_row = ",".join(str(NO_MESSAGE) if name == "number" else TYPED[RAW.field(name).type] for name in names)
    states = (
        f"LEFT JOIN states AS s ON s.{PARTITION}=b.{PARTITION} AND s.{KEY}=b.{KEY} "
        f"AND (s.{EXPIRES} IS NULL OR s.{EXPIRES}>?{buckets + 3})"
    )
    return (
        f"SELECT {first_row} UNION ALL SELECT {','.join(map(_expression, names))} FROM bodies AS b "
        f"{states if STATE_COLUMNS.intersection(names) else ''} "
        f"WHERE b.{PARTITION} IN ({','.join(f'?{number}' for number in range(1, buckets + 1))}) "
        f"AND b.{KEY}>=?{buckets + 1} AND b.{KEY}<?{buckets + 2} "
        f"AND (b.{EXPIRES} IS NULL OR b.{EXPIRES}>?{buckets + 3})"
    )


def _expression(name: str) -> str:
    if name == "number":
        return f"b.{KEY}"
    if name == "changed_body":
        return 's."body"'
    return f"{'s' if name in STATE_COLUMNS else 'b'}.{quoted(name)}"
