"""Filters choose the buckets that are read: by id, bucket, lane, state and time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNotNull, LessThan, LessThanOrEqual

from angelhair.clock import SystemClock
from angelhair.model import NewMessage
from angelhair.spark.points import Times, first_bucket
from angelhair.spark.pruning import times_of
from angelhair.spark.source import FilteredReader
from tests.spark.live import QUICK, Live, numbers, read_options, rows_scanned, table

BUCKETS = 200
BUCKET_MS = 60_000
"""Between the first messages of two buckets."""


def test_filters_choose_the_buckets_that_are_read(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"x")] * 1_000 + [NewMessage(b"x")] * 1_000)

    def planned(*filters: Any) -> list[tuple[int, int]]:
        reader = FilteredReader(read_options(live, queue))
        assert list(reader.pushFilters(list(filters))) == list(filters)
        return [(partition.run.first, partition.run.end) for partition in reader.partitions()]  # type: ignore[attr-defined]

    assert planned(EqualTo(("bucket",), 7)) == [(70, 80)]
    assert planned(EqualTo(("number",), 1_234)) == [(1_234, 1_235)]
    assert planned(EqualTo(("id",), "0-15")) == [(15, 16)]
    assert planned(In(("id",), ("0-15", "0-18", "nonsense"))) == [(15, 19)]
    assert planned(GreaterThanOrEqual(("bucket",), 198), LessThan(("number",), 1_985)) == [(1_980, 1_985)]
    assert planned(EqualTo(("lane",), 1)) == [(0, 0)]
    assert planned(EqualTo(("bucket",), 200)) == [(0, 0)]
    whole = planned()
    assert (whole[0][0], whole[-1][1]) == (0, 2_000)
    assert planned(EqualTo(("state",), "acked")) == whole

    frame = table(spark, live, queue)
    assert numbers(frame.where("bucket = 7")) == list(range(70, 80))
    assert frame.where("bucket = 7").rdd.getNumPartitions() == 1
    assert numbers(frame.where("id in ('0-15', '0-18')")) == [15, 18]
    assert frame.where("bucket >= 10 and bucket < 20 and state = 'waiting'").count() == 100


def test_what_is_unsettled_is_not_looked_for_in_finished_buckets(live: Live) -> None:
    queue = live.create(**QUICK)
    live.put(queue, [NewMessage(b"x")] * 45)
    live.drain(queue, 25)
    live.work_until(queue, "repair", 2)
    reader = FilteredReader(read_options(live, queue))
    reader.pushFilters([EqualTo(("state",), "waiting")])
    assert min(partition.run.first for partition in reader.partitions()) == 20  # type: ignore[attr-defined]


def test_one_bucket_of_200_is_read(spark: SparkSession, live: Live) -> None:
    """By Spark's own count of what the source handed over, whichever column it is asked by."""
    queue = live.create(**QUICK)
    begun_ms = SystemClock().now().wall_ms - BUCKETS * BUCKET_MS
    for half in range(2 * BUCKETS):
        ago_ms = SystemClock().now().wall_ms - (begun_ms + half * BUCKET_MS // 2)
        live.put_ago(queue, ago_ms, [NewMessage(b"x")] * 5)
    frame = table(spark, live, queue)
    assert rows_scanned(frame) == 2_000

    assert rows_scanned(frame.where("bucket = 7")) == 10
    assert rows_scanned(frame.where("id = '0-1234'")) == 1
    assert rows_scanned(frame.where("number >= 100 and number < 110")) == 10
    # The second half of a bucket: far enough from the next and from the one before that no clock's error reaches them.
    middle = datetime.fromtimestamp(begun_ms / 1000, UTC) + timedelta(milliseconds=100 * BUCKET_MS + BUCKET_MS // 2)
    first, end = (middle + timedelta(seconds=seconds) for seconds in (-15, 15))
    then = frame.where(f"enqueued_at >= timestamp'{first.isoformat()}' and enqueued_at < timestamp'{end.isoformat()}'")
    assert numbers(then) == list(range(1_005, 1_010))
    assert rows_scanned(then) == 10

    live.drain(queue, 1_990)
    live.work_until(queue, "repair", 199)
    assert rows_scanned(frame.where("state = 'waiting'")) == 10
    assert numbers(frame.where("state = 'waiting'")) == list(range(1_990, 2_000))


def test_a_put_that_was_completed_late_is_found_by_its_time(live: Live) -> None:
    """The first try reserved the id, a later one with the same key wrote it, while repair still waited."""
    queue = live.create(bucket_size=10, repair_timeout_ms=120_000)
    hour_ms = 3_600_000
    begun_ms = SystemClock().now().wall_ms - hour_ms
    for bucket in range(20):
        if bucket == 5:
            live.reserve(queue, 1)
        live.put_ago(queue, hour_ms - bucket * 60_000, [NewMessage(b"x")] * (9 if bucket == 5 else 10))
    late_ms = begun_ms + 6 * 60_000 + 30_000
    live.write_late(queue, 50, late_ms)

    def buckets(*filters: Any) -> set[int]:
        reader = FilteredReader(read_options(live, queue))
        reader.pushFilters(list(filters))
        runs = [partition.run for partition in reader.partitions()]  # type: ignore[attr-defined]
        return {bucket for run in runs for bucket in run.buckets(10)}

    def at(time_ms: int) -> datetime:
        return datetime.fromtimestamp(time_ms / 1000, UTC)

    column = ("enqueued_at",)
    assert 5 in buckets(GreaterThanOrEqual(column, at(late_ms - 1_000)), LessThan(column, at(late_ms + 1_000)))
    # Where the halving looks at such a bucket, it is not taken for a young one.
    for minutes in range(1, 20):
        assert buckets(LessThan(column, at(begun_ms + minutes * 60_000))) >= set(range(minutes))


def test_times_that_a_filter_leaves() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    noon_ms = int(noon.timestamp()) * 1000
    later = noon + timedelta(microseconds=1_500)
    at = ("enqueued_at",)
    assert times_of([]) == times_of([IsNotNull(at), EqualTo(("due_at",), noon)]) == Times()
    assert times_of([GreaterThan(at, later)]) == Times(noon_ms + 1, None)
    assert times_of([GreaterThanOrEqual(at, noon), LessThan(at, later)]) == Times(noon_ms, noon_ms + 2)
    assert times_of([LessThanOrEqual(at, noon), LessThanOrEqual(at, later)]) == Times(None, noon_ms + 1)
    assert times_of([EqualTo(at, noon)]) == Times(noon_ms, noon_ms + 1)
    assert times_of([In(at, (later, noon))]) == Times(noon_ms, noon_ms + 2)


def test_a_time_is_found_by_halving_and_with_some_to_spare() -> None:
    begun: dict[int, int | None] = {bucket: 1_000 * bucket for bucket in range(1_000)}
    asked: list[int] = []

    async def put_at(bucket: int) -> int | None:
        asked.append(bucket)
        return begun[bucket]

    def found(time_ms: int, last: bool) -> int:
        return asyncio.run(first_bucket(range(1_000), time_ms, last, put_at))

    assert found(500_500, False) == 500
    assert len(asked) <= 10
    assert found(500_500, True) == 501
    assert found(0, False) == 0
    assert found(-1, True) == 0
    assert found(10**9, False) == 999
    begun.update(dict.fromkeys(range(400, 600), None))
    assert found(500_500, False) <= 500
    assert found(700_500, True) >= 701


def test_a_bucket_without_messages_never_makes_a_read_too_short() -> None:
    """Ids that were never written leave buckets empty, wherever the halving looks first."""

    def found(empty: range, time_ms: int, last: bool) -> int:
        async def put_at(bucket: int) -> int | None:
            return None if bucket in empty else 1_000 * bucket

        return asyncio.run(first_bucket(range(100), time_ms, last, put_at))

    for first in range(0, 100, 7):
        for length in (1, 10, 50):
            for time_ms in range(500, 100_000, 9_000):
                empty = range(first, first + length)
                assert found(empty, time_ms, False) <= time_ms // 1_000
                assert found(empty, time_ms, True) >= time_ms // 1_000 + 1
