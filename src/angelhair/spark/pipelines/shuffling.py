"""How many partitions a shuffle has: Spark's own two hundred cost more than all the work, where little is shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

SETTING = "spark.sql.shuffle.partitions"
FEWEST = 2


@contextmanager
def shuffling(spark: SparkSession, partitions: int) -> Iterator[None]:
    """Not more than so many for as long as it takes, and never fewer than two."""
    before = str(spark.conf.get(SETTING))
    spark.conf.set(SETTING, str(max(FEWEST, min(partitions, int(before)))))
    try:
        yield
    finally:
        spark.conf.set(SETTING, before)
