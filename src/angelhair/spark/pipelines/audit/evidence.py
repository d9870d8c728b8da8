"""From tables of messages to bitmaps of ids: which ids of a lane are where, and with which word.

A piece is 32,768 ids of a lane; its bitmaps are 4 KiB each, whatever is in them. So ten million messages are some
hundreds of rows, and what two tables say of them is compared piece by piece, never id by id.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType

from angelhair.spark.pipelines.audit.words import ARCHIVED_TWICE, DUPLICATED
from angelhair.spark.pruning import UNSETTLED

PIECE_IDS = 32_768
"""Bits of one of Spark's bitmaps."""

QUEUE, LAKE, STATES, LANE, FOUND = "queue", "lake", "states", "lane", "found"
"""Where a bitmap comes from. `LANE`: from nowhere; it only says that there is such a piece."""

BITMAPS = ("ids", "delivered", "redelivered", "passed", "damaged")


def pieces_of(
    messages: DataFrame, source: str, most_deliveries: int | None = None, since_ms: int = 0,
    finished: Column | None = None, damaged: Column | None = None,
) -> DataFrame:
    """Bitmaps of a table with `lane, number, state, deliveries, enqueued_at`.

    `since_ms`: what was put before is not judged by settings that are younger. `finished`: whether the row's bucket is.
    """
    judged = f.unix_millis("enqueued_at") >= since_ms
    often = None if most_deliveries is None else (f.col("deliveries") > most_deliveries) & judged
    passed = None if finished is None else finished & f.col("state").isin(*UNSETTLED) & judged
    return (
        messages.groupBy("lane", _piece().alias("piece"), f.col("state").alias("word"))
        .agg(
            f.count("*").alias("rows"),
            _bitmap(f.lit(True)).alias("ids"),
            _bitmap(f.col("deliveries") > 0).alias("delivered"),
            _bitmap(often).alias("redelivered"),
            _bitmap(passed).alias("passed"),
            _bitmap(damaged).alias("damaged"),
        )
        .select("lane", "piece", f.lit(source).alias("source"), "word", "rows", *BITMAPS)
    )


def bare_pieces(ids: DataFrame, source: str, word: Column) -> DataFrame:
    """Bitmaps of a table with nothing but `lane, number`, and a word."""
    return (
        ids.groupBy("lane", _piece().alias("piece"), word.alias("word"))
        .agg(f.count("*").alias("rows"), _bitmap(f.lit(True)).alias("ids"))
        .select("lane", "piece", f.lit(source).alias("source"), "word", "rows", "ids", *_nothing("ids"))
    )


def all_pieces(spark: SparkSession, ends: Iterable[tuple[int, int]]) -> DataFrame:
    """A row for every piece of every lane, up to the lane's end: what is in no table has to be accounted for too."""
    lanes = spark.createDataFrame([(lane, end) for lane, end in ends if end > 0] or [(0, 1)], "lane int, end bigint")
    last = f.floor((f.col("end") - 1) / PIECE_IDS).cast(LongType())
    return lanes.select("lane", f.explode(f.sequence(f.lit(0).cast(LongType()), last)).alias("piece")).select(
        "lane", "piece", f.lit(LANE).alias("source"), f.lit("").alias("word"), f.lit(0).cast(LongType()).alias("rows"),
        *_nothing(),
    )


def crowded(pieces: DataFrame) -> DataFrame:
    """The pieces (`source, lane, piece`) that have more rows than ids: some id is there twice."""
    together = pieces.groupBy("source", "lane", "piece").agg(
        f.sum("rows").alias("rows"), f.bitmap_count(f.bitmap_or_agg("ids")).alias("ids")
    )
    return together.where("rows > ids").select("source", "lane", "piece")


def doubled(messages: DataFrame, where: DataFrame) -> DataFrame:
    """Ids that are in these pieces more than once: `lane, number, word`. `file`: which file a row is in."""
    rows = messages.select("lane", "number", "file", _piece().alias("piece"))
    counted = (
        rows.join(f.broadcast(where), ["lane", "piece"], "left_semi").groupBy("lane", "number")
        .agg(f.count("*").alias("rows"), f.count_distinct("file").alias("files"))
    )
    word = f.when(f.col("files") > 1, ARCHIVED_TWICE).otherwise(DUPLICATED)
    return counted.where("rows > 1").select("lane", "number", word.alias("word"))


def _piece() -> Column:
    # Spark counts its bitmaps from 1, and so begins the first one with id 1: ours begins with id 0.
    return f.bitmap_bucket_number(f.col("number") + 1) - 1


def _bitmap(wanted: Column | None) -> Column:
    """Of the rows for which it is so; positions that are null are left out. None: nobody asks."""
    if wanted is None:
        return f.lit(None).cast("binary")
    return f.bitmap_construct_agg(f.when(wanted, f.bitmap_bit_position(f.col("number") + 1)))


def _nothing(*but: str) -> list[Column]:
    return [f.lit(None).cast("binary").alias(name) for name in BITMAPS if name not in but]
