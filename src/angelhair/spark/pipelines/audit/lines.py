"""Lines of ids, put together: from one piece to the next, counted, and as many of them named as one can read."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

NAMED = 20
"""Runs of ids that are named of each word in each lane; the others are counted."""


class Said(NamedTuple):
    """How many ids of a lane have a word, and the first runs of them."""

    kind: str
    lane: int
    word: str
    ids: int
    runs: int
    named: tuple[tuple[int, int], ...]

    @property
    def ranges(self) -> list[str]:
        return [
            f"{self.lane}-{first}" if first == last else f"{self.lane}-{first}..{self.lane}-{last}"
            for first, last in self.named
        ]


def joined(lines: DataFrame) -> DataFrame:
    """Runs that go on where another ends become one; with the number of `ids` of each."""
    alike = Window.partitionBy("kind", "lane", "word").orderBy("first")
    begins = f.coalesce(f.col("first") != f.lag("last").over(alike) + 1, f.lit(True))
    numbered = lines.withColumn("begins", begins.cast("bigint")).withColumn("run", f.sum("begins").over(alike))
    whole = numbered.groupBy("kind", "lane", "word", "run").agg(
        f.min("first").alias("first"), f.max("last").alias("last")
    )
    return whole.select(
        "kind", "lane", "word", "first", "last", (f.col("last") - f.col("first") + 1).alias("ids")
    )


def said(lines: DataFrame, named: int = NAMED) -> list[Said]:
    """All of it that comes to the driver: a line for each word of each lane."""
    alike = Window.partitionBy("kind", "lane", "word").orderBy("first")
    few = f.when(f.row_number().over(alike) <= named, f.struct("first", "last"))
    counted = lines.withColumn("few", few).groupBy("kind", "lane", "word").agg(
        f.sum("ids").alias("ids"), f.count("*").alias("runs"), f.sort_array(f.collect_list("few")).alias("few")
    )
    return [
        Said(row.kind, row.lane, row.word, row.ids, row.runs, tuple((run.first, run.last) for run in row.few))
        for row in counted.orderBy("kind", "lane", "word").collect()
    ]
