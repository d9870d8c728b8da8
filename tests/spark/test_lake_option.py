"""Option `lake`: what the queue holds joined with what its lake holds, each message once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThanOrEqual, LessThan

from angelhair.clock import SystemClock
from angelhair.errors import StoreRefused
from angelhair.model import MessageId, NewMessage, QueueSettings
from angelhair.settings import ACCOUNT
from angelhair.spark.columns import COLUMNS, PAYLOADS, VARIANT
from angelhair.spark.pipelines.archive import archive
from angelhair.spark.pipelines.erase import erase_from_lake
from angelhair.spark.place import Place
from angelhair.spark.refusals import DataLost
from angelhair.spark.source import FilteredReader, QueuePartition, QueueReader, read_partition
from tests.queues import Identities
from tests.spark.live import QUICK, Live, numbers, read_options, rows_scanned, table

HOUR_MS = 3_600_000


def archived(spark: SparkSession, live: Live, queue: str, lake: Path, lake_format: str = "delta") -> None:
    place = Place.of({name.lower(): value for name, value in live.options.items()})
    archive(spark, place, ACCOUNT, queue, str(lake), Identities(), lake_format=lake_format)


def finished(live: Live, queue: str, messages: int) -> None:
    before = live.run(live.engine.marks(ACCOUNT, queue))[0].next_id
    live.put(queue, [NewMessage(b"body %d" % number) for number in range(before, before + messages)])
    live.drain(queue, messages)
    live.work_until(queue, "repair", (before + messages) // QUICK["bucket_size"])


def planned(live: Live, queue: str, lake: Path, *filters: Filter, **more: str) -> list[QueuePartition]:
    reader = FilteredReader(read_options(live, queue, lake=str(lake), **more))
    reader.pushFilters(list(filters))
    partitions = reader.partitions()
    assert all(isinstance(partition, QueuePartition) for partition in partitions)
    return partitions  # type: ignore[return-value]


def in_lake(live: Live, queue: str, lake: Path, *filters: Filter, **more: str) -> list[int]:
    """The numbers that are read from the lake; its files are no SQLite, so that this can be done here."""
    options = read_options(live, queue, lake=str(lake), **more)
    partitions = [part for part in planned(live, queue, lake, *filters, **more) if part.files is not None]
    batches = [batch for partition in partitions for batch in read_partition(options, partition)]
    return sorted(number for batch in batches for number in batch.column("number").to_pylist())


def test_each_message_once_from_the_lake_or_the_queue(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, archive=True)
    finished(live, queue, 45)
    archived(spark, live, queue, tmp_path)
    live.put(queue, [NewMessage(b"new", attributes='{"n":1}')] * 10)
    frame = table(spark, live, queue, lake=tmp_path)
    assert frame.columns == [*COLUMNS, "kept_in"]
    found = frame.orderBy("number").collect()
    assert [row.number for row in found] == list(range(55))
    # Its history is not over: these buckets are in both, and the lake is preferred.
    assert [row.kept_in for row in found] == ["lake"] * 40 + ["queue"] * 15
    by_queue = table(spark, live, queue).orderBy("number").collect()
    assert [tuple(row)[:-1] for row in found] == [tuple(row) for row in by_queue]


def test_what_the_queue_has_dropped_is_in_the_lake(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, archive=True, history_ms=0)
    finished(live, queue, 45)
    archived(spark, live, queue, tmp_path)
    live.work_until(queue, "dropped", 4)
    live.put(queue, [NewMessage(b"new")] * 10)
    assert numbers(table(spark, live, queue)) == list(range(40, 55))

    whole = table(spark, live, queue, lake=tmp_path, payload="string", columns="number,body,state,kept_in,lane")
    found = whole.orderBy("number").collect()
    assert [row.number for row in found] == list(range(55))
    assert [row.body for row in found] == [f"body {number}" for number in range(45)] + ["new"] * 10
    assert [row.state for row in found] == ["acked"] * 45 + ["waiting"] * 10
    assert {row.lane for row in found} == {0}
    assert numbers(whole.where("kept_in = 'lake'")) == list(range(40))

    # Points, isolation and filters hold across both.
    def read(where: str = "true", **more: str) -> list[int]:
        return numbers(table(spark, live, queue, lake=tmp_path, **more).where(where))

    assert read(start='{"0": 7}', end='{"0": 43}') == list(range(7, 43))
    assert read(end="archived") == list(range(40))
    assert read(start="archived") == list(range(40, 55))
    assert read("number between 35 and 44") == list(range(35, 45))
    assert rows_scanned(table(spark, live, queue, lake=tmp_path).where("bucket = 2")) == 10
    assert rows_scanned(table(spark, live, queue, lake=tmp_path).where("id = '0-17'")) == 1
    assert rows_scanned(table(spark, live, queue, lake=tmp_path).where("state = 'waiting'")) == 15

    # What was left out of the lake is said, and what never was there.
    with pytest.raises(DataLost, match="ids 55 to 98 of lane 0 were never written"):
        planned(live, queue, tmp_path, end='{"0": 99}')
    live.run(live.engine.change_queue(ACCOUNT, queue, {"archive": False}))
    live.drain(queue, 10)
    live.work_until(queue, "dropped", 5)
    with pytest.raises(DataLost, match="ids 40 to 49 of lane 0 were dropped before they came to the lake"):
        planned(live, queue, tmp_path)
    assert read(failOnDataLoss="false") == [*range(40), *range(50, 55)]
    assert in_lake(live, queue, tmp_path, end='{"0": 30}') == list(range(30))


@pytest.mark.parametrize("lake_format", ["iceberg", "parquet"])
def test_lakes_of_every_format_are_read(spark: SparkSession, live: Live, tmp_path: Path, lake_format: str) -> None:
    queue = live.create(**QUICK, archive=True)
    finished(live, queue, 45)
    archived(spark, live, queue, tmp_path, lake_format)
    assert in_lake(live, queue, tmp_path) == list(range(40))
    assert in_lake(live, queue, tmp_path, EqualTo(("bucket",), 3), columns="number,lane,body") == list(range(30, 40))
    assert {part.files is None for part in planned(live, queue, tmp_path)} == {True, False}


def test_what_was_erased_from_the_lake_has_no_body(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, archive=True, history_ms=0)
    finished(live, queue, 40)
    archived(spark, live, queue, tmp_path)
    live.work_until(queue, "dropped", 4)
    erase_from_lake(spark, str(tmp_path), queue, [MessageId(0, 17)])
    for payload in PAYLOADS:
        options = read_options(live, queue, lake=str(tmp_path), payload=payload, end='{"0": 40}')
        parts = planned(live, queue, tmp_path, end='{"0": 40}')
        batches = [batch for part in parts for batch in read_partition(options, part)]
        bodies = {row["number"]: row["body"] for batch in batches for row in batch.to_pylist()}
        assert sorted(bodies) == list(range(40))
        assert bodies[17] is None
        assert (bodies[16] is None) == (payload == VARIANT)  # which is no JSON


def test_times_choose_files_and_row_groups(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, archive=True)
    base_ms = SystemClock().now().wall_ms - 30 * HOUR_MS
    for bucket in range(20):
        ago_ms = SystemClock().now().wall_ms - (base_ms + bucket * HOUR_MS)
        live.put_ago(queue, ago_ms, [NewMessage(b"x")] * 10)
        if bucket % 5 == 4:
            live.drain(queue, 50)
            live.work_until(queue, "repair", bucket + 1)
            archived(spark, live, queue, tmp_path)

    def at(hours: float) -> datetime:
        return datetime.fromtimestamp(base_ms / 1000, UTC) + timedelta(hours=hours)

    between = GreaterThanOrEqual(("enqueued_at",), at(6.5)), LessThan(("enqueued_at",), at(8.5))
    chosen = [part for part in planned(live, queue, tmp_path, *between) if part.files is not None]
    every = [part for part in planned(live, queue, tmp_path) if part.files is not None]
    assert 0 < len({uri for part in chosen for uri in part.files or ()}) < len(
        {uri for part in every for uri in part.files or ()}
    )
    # Of a filter's rows Spark takes what passes; of an option's the source does.
    assert set(range(70, 90)) <= set(in_lake(live, queue, tmp_path, *between)) < set(range(200))
    asked = {"start": at(6.5).isoformat(), "end": at(8.5).isoformat()}
    assert in_lake(live, queue, tmp_path, **asked) == list(range(70, 90))
    assert numbers(table(spark, live, queue, lake=tmp_path, **asked)) == list(range(70, 90))
    assert in_lake(live, queue, tmp_path, EqualTo(("bucket",), 3)) == list(range(30, 40))


def test_a_queue_that_was_made_again_has_none_of_the_old_messages(
    spark: SparkSession, live: Live, tmp_path: Path
) -> None:
    queue = live.create(**QUICK, archive=True)
    finished(live, queue, 40)
    archived(spark, live, queue, tmp_path)
    live.run(live.engine.delete_queue(ACCOUNT, queue))
    live.run(live.engine.create_queue(ACCOUNT, queue, QueueSettings(**QUICK, archive=True)))
    assert in_lake(live, queue, tmp_path) == []
    finished(live, queue, 25)
    archived(spark, live, queue, tmp_path)
    assert in_lake(live, queue, tmp_path) == list(range(20))
    assert numbers(table(spark, live, queue, lake=tmp_path)) == list(range(25))


def test_lanes_have_a_border_each(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, lanes=2, archive=True)
    for _ in range(4):
        live.put(queue, [NewMessage(b"x")] * 10)
    live.drain(queue, 40)
    for lane in (0, 1):
        live.work_until(queue, "repair", 2, lane)
    archived(spark, live, queue, tmp_path)
    ids = {f"{lane}-{number}" for lane in (0, 1) for number in range(20)}
    ids |= {str(message_id) for message_id in live.put(queue, [NewMessage(b"new")] * 5)}
    found = [row.id for row in table(spark, live, queue, lake=tmp_path, columns="id").collect()]
    assert (len(found), set(found)) == (45, ids)
    assert in_lake(live, queue, tmp_path, start=json.dumps({"0": 15}), end=json.dumps({"1": 5})) == sorted(
        [*range(15, 20), *range(5)]
    )


def test_a_lake_that_is_not_there_is_not_made(live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK)
    with pytest.raises(StoreRefused, match="there is no lake at"):
        QueueReader(read_options(live, queue, lake=str(tmp_path))).partitions()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_has_gone_meanwhile_is_said(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, archive=True)
    finished(live, queue, 40)
    archived(spark, live, queue, tmp_path)
    options = read_options(live, queue, lake=str(tmp_path))
    partitions = planned(live, queue, tmp_path)
    for path in (tmp_path / queue).rglob("*.parquet"):
        path.unlink()
    with pytest.raises(DataLost, match="has gone from the lake since the read was planned"):
        list(read_partition(options, partitions[0]))
