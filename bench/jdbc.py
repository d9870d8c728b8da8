"""Spark's own JDBC source and writer on the file that Angelhair's store has laid out: what ours is measured beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from angelhair.engine import places
from angelhair.settings import DATABASE_NAME
from angelhair.spark.columns import RAW, STATE_COLUMNS
from angelhair.stores.sqlite.layout import KEY, PARTITION
from bench.sheet import Unsafe

FULL = "2"
"""What SQLite says for synchronous=FULL."""

SETTINGS = {
    "driver": "org.sqlite.JDBC",
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "busy_timeout": "600000",
    "batchsize": "10000",
}

WRITTEN = (PARTITION, KEY, "body", "enqueued_at", "keyed")
"""The columns that a put in bulk writes; the others of the table stay empty."""


def _url(folder: Path) -> str:
    return f"jdbc:sqlite:{folder / DATABASE_NAME}"


def check(spark: SparkSession, folder: Path) -> None:
    """Raises `Unsafe` unless a connection that Spark opens has the write-ahead log and synchronous=FULL."""
    for pragma, wanted in (("journal_mode", "wal"), ("synchronous", FULL)):
        reader = spark.read.format("jdbc").option("url", _url(folder)).options(**SETTINGS)
        query = f"SELECT CAST({pragma} AS TEXT) AS found FROM pragma_{pragma}"
        found = reader.option("query", query).option("customSchema", "found STRING").load().collect()[0].found
        if found != wanted:
            raise Unsafe(f"SQLite through JDBC: {pragma} is {found}, not {wanted}")


def messages(
    spark: SparkSession, folder: Path, incarnation: str, runs: Sequence[range], all_columns: bool
) -> DataFrame:
    """The stored columns of every message, partitioned as ours: each task reads the buckets of one run."""
    names = RAW.names if all_columns else ["number", "body"]
    columns = ", ".join(f"{_column(name)} AS {name}" for name in names)
    states = f"LEFT JOIN states AS s ON s.{PARTITION} = b.{PARTITION} AND s.{KEY} = b.{KEY}" if all_columns else ""
    table = f"(SELECT b.{PARTITION} AS bucket_key, {columns} FROM bodies AS b {states}) AS messages"
    keys = [[places.bodies(incarnation, 0, bucket).key for bucket in run] for run in runs]
    wanted = [f"bucket_key IN ({', '.join(repr(key) for key in part)})" for part in keys]
    # Of a SQLite INTEGER, Spark would take 32 bits.
    whole = ", ".join(f"{name} BIGINT" for name in names if str(RAW.field(name).type) == "int64")
    found = spark.read.jdbc(
        _url(folder), table, predicates=wanted, properties={**SETTINGS, "customSchema": whole}
    )
    return found.drop("bucket_key")


def _column(name: str) -> str:
    if name == "number":
        return f"b.{KEY}"
    return 's."body"' if name == "changed_body" else f'{"s" if name in STATE_COLUMNS else "b"}."{name}"'


def append(rows: DataFrame, folder: Path) -> None:
    """Into the very table that holds bodies. SQLite has one writer, so one task writes."""
    named = rows.toDF(*(name.strip('"') for name in WRITTEN))
    named.coalesce(1).write.jdbc(_url(folder), "bodies", mode="append", properties=SETTINGS)
