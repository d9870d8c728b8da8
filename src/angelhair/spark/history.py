"""What there is of a queue, as tables: what the queue itself holds, and what its lake holds.

The one place that knows how a lake is read; whoever looks at a queue's history goes through here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from angelhair.spark.lake import Lake
from angelhair.spark.place import Place

_OF_AN_INCARNATION = re.compile(r"(?:^|/)(?P<incarnation>[^/-]+)-\d+-\d+\.parquet$")


def queue_table(
    spark: SparkSession, place: Place, account: str, queue: str, columns: Sequence[str], **options: str
) -> DataFrame:
    """Only these columns are read. `options` are those of a read."""
    told = {**place_options(place), "account": account, "queue": queue, "columns": ",".join(columns), **options}
    return spark.read.format("angelhair").options(**told).load()


def lake_table(spark: SparkSession, place: str, without: Collection[str] = ()) -> DataFrame | None:
    """All incarnations that are in the lake; None if there is nothing. `without`: files that are passed over."""
    files = [file.uri for file in lake_files(place) if file.uri not in without]
    return spark.read.option("basePath", place).parquet(*files) if files else None


def lake_ends(place: str, incarnation: str, lanes: Sequence[int]) -> dict[int, int]:
    """By lane: buckets below are in the lake, as the lake itself says. Lanes that never were there are left out."""
    if not DeltaTable.is_deltatable(place):
        return {}
    lake = Lake(place)
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
    if not DeltaTable.is_deltatable(place):
        return []
    table = DeltaTable(place)
    actions = pa.table(table.get_add_actions(flatten=True))
    told = [
        actions.column(name).to_pylist() if name in actions.schema.names else [None] * actions.num_rows
        for name in ("path", "partition.lane", "num_records", "min.number", "max.number")
    ]
    root = table.table_uri.rstrip("/")
    return [
        FileTold(_plain(f"{root}/{unquote(path)}"), int(lane), rows, first, last, _incarnation_in(path))
        for path, lane, rows, first, last in zip(*told, strict=True)
    ]


def _incarnation_in(path: str) -> str | None:
    named = _OF_AN_INCARNATION.search(path)
    return None if named is None else named["incarnation"]


def _plain(uri: str) -> str:
    return uri.removeprefix("file://")


def place_options(place: Place) -> dict[str, str]:
    """As options of a read, which say the same to whoever reads them."""
    if place.path is not None:
        return {"data": str(Path(place.path).parent)}
    settings = place.cassandra
    told = {
        "contactPoints": ",".join(settings.contact_points),
        "keyspace": settings.keyspace,
        "cassandraPort": str(settings.cassandra_port),
        "dataCenter": settings.data_center,
        "consistencyLevel": settings.consistency_level,
        "useSsl": str(settings.use_ssl).lower(),
        "sslPort": str(settings.ssl_port),
        "sslCa": settings.ssl_ca,
        "sslCheckHostname": str(settings.ssl_check_hostname).lower(),
    }
    return {name: value for name, value in told.items() if value}
