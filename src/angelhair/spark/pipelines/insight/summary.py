"""All that a page shows, as plain values: few enough to be read, whatever the queue's size."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from angelhair import limits
from angelhair.spark.pipelines.insight.tables import (
    COUNTS,
    MINUTE_SECONDS,
    POISON,
    added_up,
    merged,
    quantile,
    rank,
)

MOST_POINTS = 180
"""Of a chart: more would be less than a few pixels each."""

STEPS_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1_440, 10_080)
SHOWN_POISON = 20
SHOWN_VALUES = 10

TIMES = ("enqueued_at", "first_delivered_at", "settled_at")
"""They come in milliseconds: what a time without a zone means is not the same everywhere."""

RANKS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
SIZES = tuple(2**power for power in range(limits.BODY_BYTES.bit_length()))
"""Borders of the size histogram, in bytes."""


@dataclass(frozen=True)
class Point:
    """One step of the charts."""

    time_seconds: int
    counts: dict[str, int]
    waits: dict[str, int | None]
    works: dict[str, int | None]


@dataclass
class Summary:
    queue: str
    step_seconds: int = MINUTE_SECONDS
    totals: dict[str, int] = field(default_factory=dict)
    waits: dict[str, int | None] = field(default_factory=dict)
    works: dict[str, int | None] = field(default_factory=dict)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    """How many bodies have up to so many bytes, and more than the one before."""
    points: list[Point] = field(default_factory=list)
    now: dict[str, int] = field(default_factory=dict)
    """By state: what is in no finished bucket yet."""
    oldest_waiting_ms: int | None = None
    """Since when the oldest waits."""
    poison: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """By attribute or field: its most frequent values."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def summed_up(name: str, minutes: DataFrame, poison: DataFrame, values: DataFrame | None, now: DataFrame) -> Summary:
    kept = minutes.persist()
    try:
        summary = _of_minutes(name, kept)
    finally:
        kept.unpersist()
    states = now.groupBy("state").agg(
        f.count("*").alias("messages"), f.min(f.unix_millis("enqueued_at")).alias("oldest")
    )
    for row in states.collect():
        summary.now[row.state] = row.messages
        if row.state == "waiting":
            summary.oldest_waiting_ms = row.oldest
    told = poison.limit(SHOWN_POISON).select(
        *(f.unix_millis(name).alias(name) if name in TIMES else name for name in POISON)
    )
    summary.poison = [row.asDict() for row in told.collect()]
    if values is not None:
        frequent = added_up(values, SHOWN_VALUES).orderBy("kind", "name", f.desc("messages"), "value").collect()
        for row in frequent:
            summary.values.setdefault(f"{row.kind} {row.name}", []).append((row.value, row.messages))
    return summary


def _of_minutes(name: str, minutes: DataFrame) -> Summary:
    (span,) = minutes.agg(
        f.min(f.unix_seconds("minute")).alias("first"), f.max(f.unix_seconds("minute")).alias("last")
    ).collect()
    if span.first is None:
        return Summary(name)
    summary = Summary(name, step_of(span.last - span.first))
    ranks = [rank("sizes", size).alias(f"size_{size}") for size in SIZES]
    (total,) = merged(minutes, None).select("*", *_quantiles("waits"), *_quantiles("works"), *ranks).collect()
    summary.totals = {column: total[column] for column in COUNTS}
    summary.waits, summary.works = _times(total, "waits"), _times(total, "works")
    summary.sizes = _histogram(total)
    steps = merged(minutes, summary.step_seconds).select(
        "*", f.unix_seconds("minute").alias("seconds"), *_quantiles("waits"), *_quantiles("works")
    )
    summary.points = [
        Point(
            row.seconds,
            {column: row[column] for column in COUNTS},
            _times(row, "waits"), _times(row, "works"),
        )
        for row in steps.orderBy("minute").collect()
    ]
    return summary


def step_of(span_seconds: int) -> int:
    """The shortest step by which the whole span is not more than so many points."""
    for minutes in STEPS_MINUTES:
        if span_seconds / (minutes * MINUTE_SECONDS) <= MOST_POINTS:
            return minutes * MINUTE_SECONDS
    week = STEPS_MINUTES[-1] * MINUTE_SECONDS
    return week * -(-span_seconds // (week * MOST_POINTS))


def _quantiles(sketch: str) -> list[Any]:
    return [quantile(sketch, part).alias(f"{sketch}_{name}") for name, part in RANKS.items()]


def _times(row: Row, sketch: str) -> dict[str, int | None]:
    return {name: row[f"{sketch}_{name}"] for name in RANKS}


def _histogram(total: Row) -> list[tuple[int, int]]:
    below = 0.0
    bars = []
    for size in SIZES:
        part = total[f"size_{size}"] or 0.0
        bars.append((size, round((part - below) * total.came)))
        below = part
    return bars
