"""insight: what a queue was like, minute by minute: rates, waits, redeliveries, poison messages; as tables and a page.

    look      which finished buckets has nobody looked at
    count     tasks read them and write what came of it
    commit    from now on it counts, once
    report    all batches and what is in none yet, added up, as a page

Only finished buckets are kept: they never change. What is not finished is counted anew by every job, for the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.clock import SystemClock
from angelhair.spark.history import lake_ends
from angelhair.spark.lakes import folder_of, table_place
from angelhair.spark.looking import Looking
from angelhair.spark.pipelines.insight import tables
from angelhair.spark.pipelines.insight.batches import Batch, Batches
from angelhair.spark.pipelines.insight.messages import Source, messages, planned, unfinished
from angelhair.spark.pipelines.insight.summary import Summary, summed_up
from angelhair.spark.pipelines.report.page import page
from angelhair.spark.pipelines.shuffling import shuffling
from angelhair.spark.place import Place
from angelhair.spark.planning import look

__all__ = ["STEPS", "Insight", "Wanted", "insight"]

STEPS = ("look", "count", "commit", "report")

MOST_BUCKETS_A_BATCH = 10_000
"""Some ten million messages: what is done again at most when a job ends half way."""

BUCKETS_A_PARTITION = 500
"""Of a shuffle: what is shuffled are sums of many messages."""

Step = Callable[[str], None]


class Wanted(NamedTuple):
    group: str | None = None
    """An attribute whose values are counted."""
    fields: Sequence[str] = ()
    """Fields of JSON bodies whose values are counted."""
    page: str | None = None
    """Where the page goes; beside the tables if nobody says."""
    dry_run: bool = False


NOTHING_MORE = Wanted()


@dataclass
class Insight:
    """What a job did, and what it saw."""

    queue: str
    tables: str
    page: str | None = None
    batches: int = 0
    messages: int = 0
    """That were counted now, for good."""
    buckets: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By lane: those that were counted now, or would have been."""
    swept: int = 0
    summary: Summary | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: value for name, value in asdict(self).items() if name != "summary"},
            "summary": None if self.summary is None else self.summary.as_json(),
        }


def insight(
    spark: SparkSession, place: Place, account: str, queue: str, lake: str, step: Step, wanted: Wanted = NOTHING_MORE,
    most_buckets: int = MOST_BUCKETS_A_BATCH,
) -> Insight:
    table = table_place(lake, queue)
    with Looking(place) as looking:
        shape = looking.run(lambda store: look(store, account, queue))
    source = Source(spark, place, shape, table)
    done = Insight(queue, "")
    while True:
        step("look")
        made = Batches(lake, queue, shape.incarnation)
        done.tables = made.place
        in_lake = lake_ends(table, shape.incarnation, [lane.number for lane in shape.lanes])
        lanes = planned(shape, in_lake, made.ends(), most_buckets)
        if wanted.dry_run:
            done.buckets = lanes
            return done
        if not lanes:
            break
        step("count")
        buckets = sum(end - first for first, end in lanes.values())
        with shuffling(spark, buckets // BUCKETS_A_PARTITION):
            batch = _counted(source, made, made.next(lanes), wanted)
        step("commit")
        made.commit(batch)
        done.swept += made.sweep()
        done.batches += 1
        done.messages += batch.messages
        for lane, (first, end) in lanes.items():
            done.buckets[lane] = (done.buckets.get(lane, (first, end))[0], end)
    step("report")
    with shuffling(spark, len(made.made)):
        done.summary = _summary(source, made, wanted)
    done.page = wanted.page or f"{made.place}/report.html"
    filesystem, path = folder_of(done.page)
    if "/" in path:
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    with filesystem.open_output_stream(path) as stream:
        stream.write(page(done.summary, SystemClock().now().wall_ms).encode())
    step("report done")
    return done


def _counted(source: Source, made: Batches, batch: Batch, wanted: Wanted) -> Batch:
    """Tasks write the batch's tables; they are small, and go into one file each."""
    parts = {
        "minutes": tables.minutes(messages(source, batch.lanes, tables.MINUTES)),
        "poison": tables.poisoned(messages(source, batch.lanes, tables.POISON)),
    }
    if wanted.group or wanted.fields:
        parts["tops"] = tables.tops(messages(source, batch.lanes, tables.TOPS), wanted.group, wanted.fields)
    for name, frame in parts.items():
        frame.coalesce(1).write.mode("overwrite").parquet(made.place_of(name, batch))
    counted = source.spark.read.parquet(made.place_of("minutes", batch)).agg(f.sum("came")).collect()[0][0]
    return Batch(batch.number, batch.folder, batch.lanes, counted or 0, tuple(parts))


def _summary(source: Source, made: Batches, wanted: Wanted) -> Summary:
    """Of all batches, and of what is in none yet."""
    done = made.ends()
    live = tables.minutes(unfinished(source, done, tables.MINUTES))
    poison = tables.poisoned(unfinished(source, done, tables.POISON))
    now = unfinished(source, done, ("state", "enqueued_at"))
    values = None
    if wanted.group or wanted.fields:
        values = tables.tops(unfinished(source, done, tables.TOPS), wanted.group, wanted.fields)
    return summed_up(
        source.shape.name,
        _with(made.read(source.spark, "minutes"), live),
        tables.poisoned(_with(made.read(source.spark, "poison"), poison)),
        _with(made.read(source.spark, "tops"), values),
        now,
    )


def _with(kept: DataFrame | None, live: DataFrame | None) -> Any:
    if kept is None or live is None:
        return live if kept is None else kept
    return kept.unionByName(live)
