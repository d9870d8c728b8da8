"""The messages of a timeline's shard, from whichever store, as Arrow batches of stored columns: part by part."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from angelhair.engine import places
from angelhair.engine.schema import DUES
from angelhair.spark.place import Place

RAW = pa.schema(
    [
        ("key", pa.string()),
        ("body", pa.binary()),
        ("attributes", pa.string()),
        ("enqueued_at", pa.int64()),
        ("due", pa.int64()),
        ("origin", pa.string()),
        ("deliveries", pa.int64()),
    ]
)
"""What a store hands over: times in milliseconds. A key is a time UUID, as text."""

PARTS_AT_ONCE = 16
"""In one query of a file."""


def read_parts(
    place: Place, incarnation: str, lane: int, parts: Sequence[int], names: Sequence[str], now_ms: int
) -> Iterator[pa.RecordBatch]:
    """`names`: of `RAW`, the key in front. What has expired by now is left out, and copies that count for nothing."""
    partitions = [places.dues(incarnation, lane, part).key for part in parts]
    if place.path is not None:
        return _from_file(place.path, partitions, names, now_ms)
    return _from_cassandra(place, partitions, names)


def _schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([RAW.field(name) for name in names])


def _from_file(path: str, partitions: list[str], names: Sequence[str], now_ms: int) -> Iterator[pa.RecordBatch]:
    from adbc_driver_sqlite import dbapi

    from angelhair.spark.reading.sqlite import TYPED, check_alone
    from angelhair.stores.sqlite.layout import EXPIRES, KEY, PARTITION, quoted

    check_alone(path)
    # The driver takes a column's type from what it meets first: that is a row of ours, which is taken off again.
    first_row = ",".join(TYPED[RAW.field(name).type] for name in names)
    columns = ",".join(KEY if name == "key" else quoted(name) for name in names)
    with dbapi.connect(f"file:{quote(path)}?mode=ro") as connection, connection.cursor() as cursor:
        for begin in range(0, len(partitions), PARTS_AT_ONCE):
            some = partitions[begin : begin + PARTS_AT_ONCE]
            cursor.execute(
                f"SELECT {first_row} UNION ALL SELECT {columns} FROM dues "
                f"WHERE {PARTITION} IN ({','.join('?' * len(some))}) AND ({EXPIRES} IS NULL OR {EXPIRES}>?) "
                f"AND {quoted('void')} IS NULL",
                [*some, now_ms],
            )
            for batch in cursor.fetch_record_batch():
                rows = batch.slice(1) if batch.num_rows and batch.column(0)[0].as_py() == "" else batch
                if rows.num_rows:
                    yield pa.RecordBatch.from_arrays(rows.columns, schema=_schema(names))


def _from_cassandra(place: Place, partitions: list[str], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    from angelhair.spark.reading.cassandra import BUCKETS_AHEAD, and_the_rest, ask, session_of

    session, schema = session_of(place), _schema(names)
    asked_for = and_the_rest(DUES, ("void", *names))
    statement = f"SELECT {', '.join(map(_quoted, asked_for))} FROM dues WHERE partition = ?"
    left = iter(partitions)
    asked = deque(ask(session, statement, (partition,)) for partition in islice(left, BUCKETS_AHEAD))
    while asked:
        found: list[tuple[Any, ...]] = asked.popleft().result().all()
        asked.extend(ask(session, statement, (partition,)) for partition in islice(left, 1))
        rows = [row[1:] for row in found if row[0] is None]
        if rows:
            columns = zip(*rows, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=False)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _quoted(name: str) -> str:
    return f'"{name}"'
