"""Angelhair for Spark: a queue is also a table. `register(spark)`, then `spark.read.format("angelhair")`.

Spark's own modules are imported when they are asked for: what needs a queue's place alone works without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from angelhair.spark.source import AngelhairDataSource

__all__ = ["AngelhairDataSource", "register"]


def register(spark: SparkSession) -> SparkSession:
    """Makes the format known to a session, and lets filters reach it."""
    from angelhair.spark.options import PUSHDOWN
    from angelhair.spark.source import FilteringDataSource

    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(FilteringDataSource)
    return spark


if not TYPE_CHECKING:  # so that a type checker still knows a misspelled name from a lazy one

    def __getattr__(name: str) -> object:
        if name != "AngelhairDataSource":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from angelhair.spark.source import AngelhairDataSource

        return AngelhairDataSource
