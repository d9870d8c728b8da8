"""What there is of a queue, as tables: what the queue itself holds, and what its lake holds.

The one place that knows how a lake is read; whoever looks at a queue's history goes through here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from angelhair.spark.lakes import format_at, open_lake
from angelhair.spark.place import Place


def queue_table(
    spark: SparkSession, place: Place, account: str, queue: str, columns: Sequence[str], **options: str
) -> DataFrame:
    """Only these columns are read. `options` are those of a read."""
    told = {**place.as_options(), "account": account, "queue": queue, "columns": ",".join(columns), **options}
    return spark.read.format("angelhair").options(**told).load()


def lake_table(spark: SparkSession, place: str, without: Collection[str] = ()) -> DataFrame | None:
    """All incarnations that are in the lake; None if there is nothing. `without`: files that are passed over."""
    files = [file.uri for file in lake_files(place) if file.uri not in without]
    return spark.read.option("basePath", place).parquet(*files) if files else None


def lake_ends(place: str, incarnation: str, lanes: Sequence[int]) -> dict[int, int]:
    """By lane: buckets below are in the lake, as the lake itself says. Lanes that never were there are left out."""
    if format_at(place) is None:
        return {}
    lake = open_lake(place)
    ends = {lane: lake.archived(incarnation, lane) for lane in lanes}
    return {lane: end for lane, end in ends.items() if end is not None}


class FileTold(NamedTuple):
    """What the lake's table says of one of its files."""

    uri: str
    lane: int
    rows: int | None
    first: int | None
    last: int | None
    """Its ids, where they were told."""
    incarnation: str | None
    """Whose rows it holds, by its name; None of a file that was rewritten since, which may hold any."""


def lake_files(place: str) -> list[FileTold]:
    if format_at(place) is None:
        return []
    root = place.rstrip("/")
    return [
        FileTold(
            f"{root}/{file.path}", file.lane, file.rows, file.first, file.last,
            None if file.name is None else file.name.incarnation or None,
        )
        for file in open_lake(place).held()
    ]
