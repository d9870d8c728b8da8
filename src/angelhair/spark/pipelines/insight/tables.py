"""The tables of an insight: from messages to minutes, to what is delivered most often, to what is most frequent.

Every one of them can be added up: counts are summed, sketches are merged, and of two lists of the first so many the
first so many are taken. So a batch of buckets is looked at once, and what came of it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from angelhair.spark.columns import ACKED

MINUTE_SECONDS = 60

POISONED = 50
"""Messages that are kept of each batch: those that were delivered most often, and more than once."""

KEPT_VALUES = 1_000
"""Of an attribute or field in each batch, those that are most frequent. Where there are more, counts are too low."""

MINUTES = ("lane", "number", "body", "enqueued_at", "due_at", "first_delivered_at", "settled_at", "deliveries", "state")
POISON = (
    "id", "lane", "number", "deliveries", "state", "moved_to", "enqueued_at", "first_delivered_at", "settled_at"
)
TOPS = ("attributes", "body")
"""The columns of a queue that each table is made of."""

COUNTS = ("came", "bytes", "delivered", "redelivered", "acked", "moved")
SKETCHES = ("waits", "works", "sizes")
"""Times in milliseconds, sizes in bytes."""


def minutes(messages: DataFrame) -> DataFrame:
    """By minute: what came, what was first delivered and what was settled in it; with how long that took.

    A message waits from when it was due: a delay is what its producer wanted.
    """
    came, delivered, settled = (f.col(name) for name in ("enqueued_at", "first_delivered_at", "settled_at"))
    happened = f.array(
        _event(came, "came", size=f.octet_length("body").cast("bigint")),
        _event(
            delivered, "delivered", wait=_between(f.greatest(came, f.col("due_at")), delivered),
            more=f.greatest(f.col("deliveries") - 1, f.lit(0)).cast("bigint"),
        ),
        _event(settled, "settled", work=_between(delivered, settled), acked=f.col("state") == ACKED),
    )
    events = messages.select(f.explode(happened).alias("event")).select("event.*").where("minute is not null")
    counts = {
        "came": f.count_if(f.col("kind") == "came"),
        "bytes": f.sum("size"),
        "delivered": f.count_if(f.col("kind") == "delivered"),
        "redelivered": f.sum("more"),
        "acked": f.count_if("acked"),
        "moved": f.count_if(~f.col("acked")),
    }
    sketches = {"waits": "wait", "works": "work", "sizes": "size"}
    return events.groupBy("minute").agg(
        *(f.coalesce(column, f.lit(0)).cast("bigint").alias(name) for name, column in counts.items()),
        *(f.kll_sketch_agg_bigint(column).alias(name) for name, column in sketches.items()),
    )


def merged(some: DataFrame, seconds: int | None = MINUTE_SECONDS) -> DataFrame:
    """Minutes of several batches added up, by so many seconds each; None makes one line of all."""
    step = f.lit(None) if seconds is None else f.floor(f.unix_seconds("minute") / seconds) * seconds
    minute = f.timestamp_seconds(step.cast("bigint")).alias("minute")
    return some.groupBy(minute).agg(
        *(f.sum(name).alias(name) for name in COUNTS), *(f.kll_merge_agg_bigint(name).alias(name) for name in SKETCHES)
    )


def quantile(sketch: str, rank: float) -> Column:
    """Null where nothing was measured."""
    return f.when(
        f.kll_sketch_get_n_bigint(sketch) > 0, f.kll_sketch_get_quantile_bigint(sketch, f.lit(rank))
    ).cast("bigint")


def rank(sketch: str, value: int) -> Column:
    """Which part of all is not above the value."""
    return f.when(
        f.kll_sketch_get_n_bigint(sketch) > 0, f.kll_sketch_get_rank_bigint(sketch, f.lit(value).cast("bigint"))
    )


def poisoned(messages: DataFrame) -> DataFrame:
    """Those that were delivered most often. Also of several batches: the first of the first."""
    often = messages.where("deliveries > 1").select(*POISON)
    return often.orderBy(f.desc("deliveries"), "lane", "number").limit(POISONED)


def tops(messages: DataFrame, group: str | None, fields: Sequence[str]) -> DataFrame:
    """How often which value of an attribute and of fields of the body is there: `kind, name, value, messages`."""
    attributes = f.try_parse_json("attributes")
    body = f.try_parse_json(f.try_validate_utf8(f.col("body").cast("string")))
    wanted = [("group", group, attributes)] if group else []
    wanted += [("field", field, body) for field in fields]
    found = f.array(
        *(
            f.struct(
                f.lit(kind).alias("kind"), f.lit(name).alias("name"),
                f.try_variant_get(document, path_of(name), "string").alias("value"),
            )
            for kind, name, document in wanted
        )
    )
    values = messages.select(f.explode(found).alias("found")).select("found.*").where("value is not null")
    return most_frequent(values.groupBy("kind", "name", "value").agg(f.count("*").alias("messages")), KEPT_VALUES)


def added_up(some: DataFrame, most: int) -> DataFrame:
    """Values of several batches."""
    return most_frequent(some.groupBy("kind", "name", "value").agg(f.sum("messages").alias("messages")), most)


def most_frequent(values: DataFrame, most: int) -> DataFrame:
    alike = Window.partitionBy("kind", "name").orderBy(f.desc("messages"), "value")
    # No withColumn and no drop: a declared pipeline resolves those before the table that they are about is there.
    placed = values.select("*", f.row_number().over(alike).alias("place"))
    return placed.where(f.col("place") <= most).select("kind", "name", "value", "messages")


def path_of(name: str) -> str:
    """`customer.country`, or a path such as `$.items[0].price`."""
    return name if name.startswith("$") else f"$.{name}"


def _event(when: Column, kind: str, **values: Column) -> Column:
    """All kinds have the same columns: what one does not have is null."""
    minute = f.timestamp_seconds(f.floor(f.unix_seconds(when) / MINUTE_SECONDS) * MINUTE_SECONDS)
    types = {"size": "bigint", "wait": "bigint", "more": "bigint", "work": "bigint", "acked": "boolean"}
    columns = [values.get(name, f.lit(None)).cast(type_).alias(name) for name, type_ in types.items()]
    return f.struct(minute.alias("minute"), f.lit(kind).alias("kind"), *columns)


def _between(begin: Column, end: Column) -> Column:
    """In milliseconds. Two servers' clocks differ a little: nothing takes less than no time."""
    return f.greatest(f.unix_millis(end) - f.unix_millis(begin), f.lit(0))
