"""insight: minutes that can be added up, each message counted once, and a page that stands by itself."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.testing import assertDataFrameEqual

from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.pipelines.archive import archive, quietly
from angelhair.spark.pipelines.insight import Insight, Wanted, insight, tables
from angelhair.spark.pipelines.insight.batches import Batches, InsightMoved
from angelhair.spark.pipelines.insight.summary import MOST_POINTS, Point, Summary, step_of, summed_up
from angelhair.spark.pipelines.report import figures
from angelhair.spark.pipelines.report.axes import duration_ticks, round_ticks, time_ticks
from angelhair.spark.pipelines.report.page import page
from angelhair.spark.place import Place
from tests.queues import Identities
from tests.spark.live import QUICK, Live

BUCKET = QUICK["bucket_size"]
COUNTS = "came bigint, bytes bigint, delivered bigint, redelivered bigint, acked bigint, moved bigint"


class OnPurpose(Exception):
    pass


def place_of(live: Live) -> Place:
    return Place.of({name.lower(): value for name, value in live.options.items()})


def looked(spark: SparkSession, live: Live, queue: str, lake: Path, **more: Any) -> Insight:
    more = {"step": quietly, **more}
    return insight(spark, place_of(live), ACCOUNT, queue, str(lake), **more)


def filled(live: Live, queue: str, bodies: list[bytes], attributes: str | None = None) -> None:
    """Acked, in finished buckets."""
    before = live.run(live.engine.marks(ACCOUNT, queue))[0].next_id
    live.put(queue, [NewMessage(body, attributes) for body in bodies])
    live.drain(queue, len(bodies))
    live.work_until(queue, "repair", (before + len(bodies)) // BUCKET)


# --- tables -----------------------------------------------------------------------------------------------------------

def messages(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """Rows of number, body, attributes, put, due, delivered, settled (in seconds), deliveries, state."""
    plain = spark.createDataFrame(
        list(rows),
        "number bigint, body binary, attributes string, enqueued_at double, due_at double, first_delivered_at double, "
        "settled_at double, deliveries int, state string",
    )
    times = ("enqueued_at", "due_at", "first_delivered_at", "settled_at")
    whole = plain.withColumns({name: f.timestamp_millis((f.col(name) * 1_000).cast("bigint")) for name in times})
    return whole.select(
        f.concat(f.lit("0-"), "number").alias("id"), f.lit(0).alias("lane"), "*",
        f.lit(None).cast("string").alias("moved_to"),
    )


def test_minutes_are_counted_and_can_be_added_up(spark: SparkSession) -> None:
    one = messages(
        spark,
        (0, b"abc", None, 0.0, None, 10.0, 70.0, 1, "acked"),
        (1, b"abcde", None, 59.0, 100.0, 130.0, 131.0, 3, "dead"),
        (2, b"", None, 61.0, None, None, None, 0, "waiting"),
    )
    other = messages(spark, (3, b"x", None, 62.0, None, 62.5, 65.0, 2, "acked"))
    both = tables.merged(tables.minutes(one).unionByName(tables.minutes(other)))
    counted = both.select(
        f.unix_seconds("minute").alias("at"), *tables.COUNTS,
        tables.quantile("waits", 0.5).alias("wait"), tables.quantile("works", 0.99).alias("work"),
    )
    wanted = [
        (0, 2, 8, 1, 0, 0, 0, 10_000, None),
        (60, 2, 1, 1, 1, 2, 0, 500, 60_000),
        # This one waited from when it was due, not from when it was put.
        (120, 0, 0, 1, 2, 0, 1, 30_000, 1_000),
    ]
    schema = f"at bigint, {COUNTS}, wait bigint, work bigint"
    assertDataFrameEqual(counted, spark.createDataFrame(wanted, schema))
    together = tables.merged(tables.minutes(one.unionByName(other)), None)
    assert together.select("minute", *tables.COUNTS).collect() == [(None, 4, 9, 3, 3, 2, 1)]


def test_what_is_delivered_most_often_comes_first(spark: SparkSession) -> None:
    some = messages(
        spark,
        *(
            (number, b"", None, 0.0, None, 1.0, 2.0, deliveries, "acked")
            for number, deliveries in enumerate((1, 9, 2, 0))
        ),
    )
    assert [(row.id, row.deliveries) for row in tables.poisoned(some).collect()] == [("0-1", 9), ("0-2", 2)]


def test_values_of_attributes_and_of_json_bodies_are_counted_and_what_is_no_json_is_passed_over(
    spark: SparkSession,
) -> None:
    bodies = [b'{"customer": {"country": "DE"}, "n": 1}'] * 3
    bodies += [b'{"customer": {"country": "FR"}}', b"\xff\xfe", b"no", b"[]"]
    some = messages(
        spark,
        *((number, body, '{"kind": "order"}' if number else None, 0.0, None, None, None, 0, "waiting")
          for number, body in enumerate(bodies)),
    )
    found = tables.tops(some, "kind", ["customer.country", "$.n"])
    wanted = [
        ("group", "kind", "order", 6), ("field", "customer.country", "DE", 3), ("field", "customer.country", "FR", 1),
        ("field", "$.n", "1", 3),
    ]
    schema = "kind string, name string, value string, messages bigint"
    assertDataFrameEqual(found, spark.createDataFrame(wanted, schema))
    twice = tables.added_up(found.unionByName(found), 1).where("name = 'customer.country'")
    assertDataFrameEqual(twice, spark.createDataFrame([("field", "customer.country", "DE", 6)], schema))


def test_steps_are_as_long_as_a_chart_needs() -> None:
    assert step_of(0) == 60
    assert step_of(180 * 60) == 60
    assert step_of(181 * 60) == 120
    for days in (1, 30, 3_650, 36_500):
        assert days * 86_400 / step_of(days * 86_400) <= MOST_POINTS


# --- the job ----------------------------------------------------------------------------------------------------------


def test_every_message_is_counted_once_however_often_a_job_runs_and_wherever_it_ends(
    spark: SparkSession, live: Live, tmp_path: Path
) -> None:
    queue = live.create(**QUICK, archive=True, history_ms=0)
    filled(live, queue, [b'{"country": "DE"}'] * 40, '{"kind": "order"}')
    wanted = Wanted("kind", ("country",))
    assert looked(spark, live, queue, tmp_path, wanted=Wanted(dry_run=True)).buckets == {0: (0, 4)}
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OnPurpose):
        looked(spark, live, queue, tmp_path, wanted=wanted, step=_failing_at("commit"))
    done = looked(spark, live, queue, tmp_path, wanted=wanted)
    # What the first job left was in the way of nobody, and is gone.
    assert (done.messages, done.batches, done.buckets, done.swept) == (40, 1, {0: (0, 4)}, 3)

    # What the queue has dropped meanwhile comes from the lake.
    filled(live, queue, [b'{"country": "FR"}'] * 20)
    archive(spark, place_of(live), ACCOUNT, queue, str(tmp_path), Identities())
    live.work_until(queue, "dropped", 6)
    filled(live, queue, [b"text"] * 10)
    live.put(queue, [NewMessage(b"x")] * 7)
    live.receive(queue, 3, 0)
    live.receive(queue, 3, 3_600_000)
    done = looked(spark, live, queue, tmp_path, wanted=wanted, most_buckets=2)
    assert (done.messages, done.batches, done.buckets) == (30, 2, {0: (4, 7)})
    summary = done.summary
    assert summary is not None
    assert (summary.totals["came"], summary.totals["acked"], summary.totals["redelivered"]) == (77, 70, 3)
    assert summary.now == {"waiting": 4, "in flight": 3}
    assert summary.values == {"field country": [("DE", 40), ("FR", 20)], "group kind": [("order", 40)]}
    assert sum(point.counts["came"] for point in summary.points) == 77
    assert [row["deliveries"] for row in summary.poison] == [2, 2, 2]
    assert sum(count for _, count in summary.sizes) == 77
    assert summary.waits["p50"] is not None and summary.works["p99"] is not None
    assert json.loads(json.dumps(done.as_json()))["summary"]["totals"]["came"] == 77

    assert done.page is not None and queue in Path(done.page).read_text()
    assert looked(spark, live, queue, tmp_path, wanted=Wanted(dry_run=True)).buckets == {}


def _failing_at(wanted: str) -> Any:
    def step(name: str) -> None:
        if name == wanted:
            raise OnPurpose(name)

    return step


def test_of_two_jobs_at_once_one_counts(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK)
    filled(live, queue, [b"x"] * 20)

    def step(name: str) -> None:
        if name == "commit":
            looked(spark, live, queue, tmp_path)

    with pytest.raises(InsightMoved, match="another job has made batch 0"):
        looked(spark, live, queue, tmp_path, step=step)
    done = looked(spark, live, queue, tmp_path, wanted=Wanted(page=str(tmp_path / "page.html")))
    assert done.summary is not None and done.summary.totals["came"] == 20
    assert done.page == str(tmp_path / "page.html") and (tmp_path / "page.html").exists()


def test_an_empty_queue_has_a_page_too(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    done = looked(spark, live, live.create(), tmp_path)
    assert done.page is not None and "nothing has been put yet" in Path(done.page).read_text()


def test_batches_go_on_where_the_last_ended(tmp_path: Path) -> None:
    batches = Batches(str(tmp_path), "q", "i")
    assert batches.ends() == {}
    batches.commit(batches.next({0: (0, 4), 1: (0, 2)}))
    batches.commit(batches.next({0: (4, 5)}))
    assert Batches(str(tmp_path), "q", "i").ends() == {0: 5, 1: 2}
    assert [path.suffix for path in (tmp_path / "_insight" / "q" / "i" / "batches").iterdir()] == [".json"] * 2


# --- the page ---------------------------------------------------------------------------------------------------------


class Reading(HTMLParser):
    """What a browser would fetch or run, and whether every element is closed."""

    VOID = ("meta", "line", "rect", "polyline", "polygon", "circle", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.fetched += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_stands_by_itself_and_escapes_what_users_wrote() -> None:
    nasty = "<script>alert('x')</script>"
    counts = {"came": 10, "bytes": 100, "delivered": 10, "redelivered": 2, "acked": 9, "moved": 1}
    times = {"p50": 5, "p95": 50, "p99": 90_000}
    points = [Point(60 * minute, counts, times, dict.fromkeys(times)) for minute in (0, 1, 5)]
    poison = {
        "id": "0-1", "deliveries": 12, "state": "dead", "moved_to": f"dead/a/{nasty.replace('/', '')}/i/0/7",
        "enqueued_at": 0, "first_delivered_at": 1_000, "settled_at": 61_000,
    }
    summary = Summary(
        nasty, 60, counts, times, dict.fromkeys(times), [(1, 0), (2, 3), (4, 7)], points, {"waiting": 3}, 1_000,
        [poison], {f"group {nasty}": [(nasty, 3)]},
    )
    text = page(summary, 100_000)
    read = Reading()
    read.feed(text)
    read.close()
    assert read.open == []
    assert "script" not in read.tags and "img" not in read.tags and "link" not in read.tags
    assert read.fetched == []
    assert "url(" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert "&lt;script&gt;" in text and "12" in text and "60 s" not in text and "1 min" in text
    assert len(re.findall("<svg", text)) == 6


def test_figures_are_short() -> None:
    assert [figures.number(value) for value in (0, 7, 999, 999.7, 12_345, 4_560_000)] == [
        "0", "7", "999", "1k", "12.3k", "4.56M",
    ]
    assert [figures.size(value) for value in (5, 1_024, 3_500_000)] == ["5 B", "1 KiB", "3.34 MiB"]
    assert [figures.duration(value) for value in (None, 0, 12, 1_500, 90_000, 7_200_000)] == [
        "–", "0 ms", "12 ms", "1.5 s", "1.5 min", "2 h",
    ]
    assert [figures.share(part, 1_000) for part in (0, 0.5, 5, 1_000)] == ["0 %", "< 0.1 %", "0.5 %", "100 %"]
    assert figures.share(1, 0) == "–"


def test_ticks_are_round() -> None:
    assert round_ticks(0) == [0, 1]
    assert round_ticks(3) == [0, 1, 2, 3]
    assert round_ticks(7_300) == [0, 2_000, 4_000, 6_000, 8_000]
    assert duration_ticks(3, 45_000) == [1, 10, 100, 1_000, 10_000, 60_000]
    hour = 1_790_002_800
    assert time_ticks(hour - 600, hour + 3_600, 4) == [
        (time, figures.moment(time * 1_000)[11:16]) for time in (hour, hour + 1_800, hour + 3_600)
    ]


def test_what_only_now_is_there_is_in_the_summary(spark: SparkSession) -> None:
    some = messages(spark, (0, b"abc", None, time.time(), None, None, None, 0, "waiting"))
    summary = summed_up("q", tables.minutes(some), tables.poisoned(some), None, some.select("state", "enqueued_at"))
    assert (summary.totals["came"], summary.now, summary.poison, summary.waits["p50"]) == (1, {"waiting": 1}, [], None)
    assert summary.oldest_waiting_ms is not None and abs(summary.oldest_waiting_ms / 1_000 - time.time()) < 3_600
    assert [size for size, count in summary.sizes if count] == [4]
