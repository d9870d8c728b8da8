"""Angelhair for Spark: a queue is also a table. `register(spark)`, then `spark.read.format("angelhair")`."""

from __future__ import annotations

from pyspark.sql import SparkSession

from angelhair.spark.options import PUSHDOWN
from angelhair.spark.source import AngelhairDataSource, FilteringDataSource

__all__ = ["AngelhairDataSource", "register"]


def register(spark: SparkSession) -> SparkSession:
    """Makes the format known to a session, and lets filters reach it."""
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(FilteringDataSource)
    return spark
