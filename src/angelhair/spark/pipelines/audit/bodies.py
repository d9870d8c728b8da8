"""Whether the lake has the bodies that the queue has: by one number a bucket, and only where two differ by id."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from angelhair.spark.pipelines.audit.words import CORRUPTED


def differing_buckets(queue: DataFrame, lake: DataFrame) -> DataFrame:
    """`lane, bucket` in which the two do not hold the same. Both have `lane, bucket, number, body`."""
    one, other = _summed(queue, "queue"), _summed(lake, "lake")
    return one.join(other, ["lane", "bucket"], "full_outer").where(~f.col("queue").eqNullSafe(f.col("lake"))).select(
        "lane", "bucket"
    )


def corrupted(queue: DataFrame, lake: DataFrame, buckets: DataFrame) -> DataFrame:
    """`lane, number, word` of messages in these buckets whose bodies differ. What is in one of the two only is left
    out: it is found by its absence. So is what has no body: it was erased, as somebody wanted."""
    here, there = (
        table.join(f.broadcast(buckets), ["lane", "bucket"], "left_semi").where("body is not null").select(
            "lane", "number", _sum_of_row().alias(name)
        )
        for table, name in ((queue, "queue"), (lake, "lake"))
    )
    both = here.join(there, ["lane", "number"]).where("queue != lake")
    return both.select("lane", "number", f.lit(CORRUPTED).alias("word")).distinct()


def _summed(table: DataFrame, name: str) -> DataFrame:
    """The order does not matter. Two rows that are the same cancel each other out, so they are counted too."""
    total = f.struct(f.count("*").alias("rows"), f.bit_xor(_sum_of_row()).alias("sum"))
    return table.groupBy("lane", "bucket").agg(total.alias(name))


def _sum_of_row() -> Column:
    # What was erased is null in the lake, and empty in the queue.
    return f.xxhash64("number", f.coalesce("body", f.lit(b"")))
