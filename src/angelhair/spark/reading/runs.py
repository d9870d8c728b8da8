"""One run of buckets, from whichever store, as Arrow batches of stored columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from angelhair.spark.place import Place
from angelhair.spark.planning import Run

Lost = Callable[[int], None]
"""Told that buckets up to, not including, this one were dropped. Raises if that must not be."""


def read_run(
    place: Place, incarnation: str, bucket_size: int, run: Run, names: Sequence[str], now_ms: int, lost: Lost
) -> Iterator[pa.RecordBatch]:
    """What of the run is below the lane's floor, read after the rows or together with them (R14), is left out."""
    if place.path is not None:
        from angelhair.spark.reading import sqlite

        return sqlite.read(place.path, incarnation, bucket_size, run, names, now_ms, lost)
    from angelhair.spark.reading import cassandra

    return cassandra.read(place, incarnation, bucket_size, run, names, lost)


def purged_below(place: Place, incarnation: str, lane: int) -> int:
    """The lane's purge mark as it is now, read as the messages are."""
    if place.path is not None:
        from angelhair.spark.reading import sqlite

        return sqlite.purged_below(place.path, incarnation, lane)
    from angelhair.spark.reading import cassandra

    return cassandra.purged_below(place, incarnation, lane)
