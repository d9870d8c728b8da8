"""Which ids of a run have a state row: for who has to know of messages whose body is not there. An id that was given up
for another may never have had one."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa

from angelhair.engine import places
from angelhair.engine.bucketed.examine import VOID
from angelhair.spark.place import Place
from angelhair.spark.planning import Run

BUCKETS_AT_ONCE = 32
"""In one query of a file; on Cassandra so many queries are under way."""


def state_numbers(place: Place, incarnation: str, bucket_size: int, run: Run) -> Iterator[pa.Array]:
    buckets = run.buckets(bucket_size)
    for begin in range(buckets.start, buckets.stop, BUCKETS_AT_ONCE):
        some = range(begin, min(buckets.stop, begin + BUCKETS_AT_ONCE))
        partitions = [places.states(incarnation, run.lane, bucket).key for bucket in some]
        yield _from_file(place.path, partitions) if place.path is not None else _from_cassandra(place, partitions)


def _from_file(path: str, partitions: list[str]) -> pa.Array:
    from adbc_driver_sqlite import dbapi

    from angelhair.stores.sqlite.layout import KEY, PARTITION

    marks = ",".join("?" * len(partitions))
    with dbapi.connect(f"file:{quote(path)}?mode=ro") as connection, connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {KEY} FROM states WHERE {PARTITION} IN ({marks}) AND settled IS NOT ?", [*partitions, VOID]
        )
        # Without any row the driver does not know the type.
        return cursor.fetch_arrow_table().column(0).cast(pa.int64()).combine_chunks()


def _from_cassandra(place: Place, partitions: list[str]) -> pa.Array:
    from angelhair.spark.reading.cassandra import ask, session_of

    session = session_of(place)
    statement = "SELECT key, settled FROM states WHERE partition = ?"
    asked = [ask(session, statement, (partition,)) for partition in partitions]
    # A partition with flags and without rows answers with one row that has no key.
    rows = [row for answer in asked for row in answer.result() if row[0] is not None]
    return pa.array([key for key, settled in rows if settled != VOID], pa.int64())
