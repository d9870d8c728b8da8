"""A timeline as a table: what is there, by due time, and nothing is taken away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import GreaterThanOrEqual, LessThan

from angelhair.clock import SystemClock
from angelhair.engine.timeline.parts import time_of
from angelhair.model import TIMELINE, Ask, MessageId, NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.source import FilteredReader
from tests.spark.live import Live, read_options, rows_scanned, table

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def now_ms() -> int:
    return SystemClock().now().wall_ms


def time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def due(*dues_ms: int) -> list[NewMessage]:
    return [NewMessage(b"%d" % number, due_ms=due_ms) for number, due_ms in enumerate(dues_ms)]


def bodies(frame: DataFrame) -> list[str]:
    return sorted(bytes(row.body).decode() for row in frame.select("body").collect())


def test_what_a_timeline_holds_is_a_table(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=TIMELINE, lanes=2, granularity="hour")
    begun_ms = now_ms()
    messages = [
        NewMessage(b"a", '{"colour":"blue"}', due_ms=begun_ms + 30 * DAY_MS),
        NewMessage(b"b", due_ms=begun_ms + 31 * DAY_MS),
        NewMessage(b"c", due_ms=begun_ms - DAY_MS),
    ]
    ids = live.put(queue, messages)
    rows = {bytes(row.body): row for row in table(spark, live, queue, columns=COLUMNS).collect()}
    assert set(rows) == {b"a", b"b", b"c"}
    first = rows[b"a"]
    assert (first.id, first.lane, first.attributes) == (str(ids[0]), ids[0].lane, '{"colour":"blue"}')
    assert first.due_at == first.due == time(begun_ms + 30 * DAY_MS).replace(tzinfo=None)
    assert (first.state, first.deliveries, first.number, first.visible_at) == ("delayed", 0, None, None)
    assert first.bucket == (begun_ms + 30 * DAY_MS) // HOUR_MS
    # What is put too late comes later than was wanted.
    late = rows[b"c"]
    assert late.due == time(begun_ms - DAY_MS).replace(tzinfo=None)
    assert late.due_at >= time(begun_ms).replace(tzinfo=None)


COLUMNS = "id,lane,number,bucket,body,attributes,enqueued_at,due_at,due,visible_at,deliveries,state"


def test_reading_takes_nothing_away_and_shows_what_is_processed(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=TIMELINE, lanes=1, producer_delay_ms=0)
    live.put(queue, due(*[now_ms()] * 5))
    assert bodies(table(spark, live, queue)) == ["0", "1", "2", "3", "4"]
    (deliveries,) = live.run(live.engine.receive(ACCOUNT, queue, [Ask(5, consumer="worker")]))
    assert isinstance(deliveries, list) and len(deliveries) == 5
    live.ack(queue, deliveries)
    live.run(live.engine.leave_consumer(ACCOUNT, queue, "worker"))
    frame = table(spark, live, queue)
    assert {row.state for row in frame.select("state").collect()} == {"acked"}
    assert bodies(frame) == ["0", "1", "2", "3", "4"]


def test_filters_by_due_time_choose_the_parts_that_are_read(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=TIMELINE, lanes=3, granularity="hour")
    begun_ms = (now_ms() // HOUR_MS + 1) * HOUR_MS
    live.put(queue, due(*(begun_ms + hour * HOUR_MS for hour in range(100))))
    frame = table(spark, live, queue)
    assert rows_scanned(frame) == 100
    first, end = time(begun_ms + 40 * HOUR_MS), time(begun_ms + 42 * HOUR_MS - 1_000)
    then = frame.where(f"due_at >= timestamp'{first.isoformat()}' and due_at < timestamp'{end.isoformat()}'")
    assert bodies(then) == ["40", "41"]
    assert rows_scanned(then) == 2
    assert rows_scanned(frame.where(f"due_at >= timestamp'{time(begun_ms + 90 * HOUR_MS).isoformat()}'")) == 10

    def planned(*filters: Any) -> set[int]:
        reader = FilteredReader(read_options(live, queue))
        reader.pushFilters(list(filters))
        return {part for partition in reader.partitions() for part in partition.shard.parts}  # type: ignore[attr-defined]

    hour = begun_ms // HOUR_MS
    assert planned(GreaterThanOrEqual(("due_at",), first), LessThan(("due_at",), end)) == {hour + 40, hour + 41}
    # What was wanted earlier may have been put too late: it lies in any later part.
    assert planned(GreaterThanOrEqual(("due",), first)) == set(range(hour + 40, hour + 100))
    assert planned(LessThan(("due",), first)) == set(range(hour, hour + 100))


def test_years_between_two_messages_cost_nothing(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=TIMELINE, lanes=1, granularity="minute")
    live.put(queue, due(now_ms() + DAY_MS, now_ms() + 9 * 365 * DAY_MS))
    reader = FilteredReader(read_options(live, queue))
    assert sum(len(partition.shard.parts) for partition in reader.partitions()) == 2  # type: ignore[attr-defined]
    assert bodies(table(spark, live, queue)) == ["0", "1"]


def test_an_empty_timeline_is_an_empty_table(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=TIMELINE)
    assert table(spark, live, queue).collect() == []


@pytest.mark.parametrize("option", ["start", "isolation", "lake"])
def test_what_a_timeline_has_not_is_refused(spark: SparkSession, live: Live, option: str, tmp_path: object) -> None:
    queue = live.create(kind=TIMELINE)
    value = {"start": "latest", "isolation": "final", "lake": str(tmp_path)}[option]
    with pytest.raises((AnalysisException, PySparkException), match=option):
        table(spark, live, queue, **{option: value}).collect()


def test_ids_are_those_that_producers_were_given(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=TIMELINE, lanes=6)
    dues_ms = [now_ms() + DAY_MS + timedelta(seconds=second).seconds * 1000 for second in range(20)]
    ids = live.put(queue, due(*dues_ms))
    found = [row.id for row in table(spark, live, queue).select("id").collect()]
    assert sorted(found) == sorted(map(str, ids))
    assert sorted(time_of(str(each).partition("-")[2]) for each in found) == dues_ms
    assert {MessageId.parse(each) for each in found} == set(ids)
