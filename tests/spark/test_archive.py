"""archive: finished buckets in the lake, each message once, whatever happens on the way."""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from angelhair.cli.pipeline import archive as repeating
from angelhair.cli.pipeline.jobs import Job
from angelhair.errors import StoreRefused
from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.lakes import LakeMoved, open_lake
from angelhair.spark.lakes.iceberg import IcebergLake
from angelhair.spark.pipelines import archive as archiving
from angelhair.spark.pipelines.archive import STEPS, Archived, archive
from angelhair.spark.place import Place
from angelhair.spark.refusals import DataLost
from tests.queues import Identities
from tests.spark import lakes
from tests.spark.lakes import OnPurpose, failing_at
from tests.spark.live import QUICK, Live


def place_of(live: Live) -> Place:
    return Place.of({name.lower(): value for name, value in live.options.items()})


def archived(spark: SparkSession, live: Live, queue: str, lake: Path, **more: Any) -> Archived:
    return archive(spark, place_of(live), ACCOUNT, queue, str(lake), Identities(), **more)


def finished(live: Live, messages: int, queue: str | None = None, **settings: Any) -> str:
    """A queue whose buckets, so many messages long, are all finished but for the last."""
    queue = queue or live.create(**{**QUICK, "archive": True, **settings})
    before = live.run(live.engine.marks(ACCOUNT, queue))[0].next_id
    live.put(queue, [NewMessage(b"body %d" % (before + number)) for number in range(messages)])
    live.drain(queue, messages)
    live.work_until(queue, "repair", (before + messages) // QUICK["bucket_size"])
    return queue


def ids_in(lake: Path, queue: str) -> Counter[int]:
    return Counter(DeltaTable(str(lake / queue)).to_pyarrow_table(columns=["number"]).column("number").to_pylist())


def test_finished_buckets_come_to_the_lake_and_the_mark_follows(
    spark: SparkSession, live: Live, tmp_path: Path
) -> None:
    queue = finished(live, 45)
    report = archived(spark, live, queue, tmp_path)
    assert (report.messages, report.marks) == (40, {0: 4})
    table = DeltaTable(str(tmp_path / queue)).to_pyarrow_table().sort_by("number")
    assert table.column("number").to_pylist() == list(range(40))
    assert table.column("body").to_pylist() == [b"body %d" % number for number in range(40)]
    assert set(table.column("state").to_pylist()) == {"acked"}
    assert set(table.column("lane").to_pylist()) == {0}
    assert live.run(live.engine.marks(ACCOUNT, queue))[0].archived == 4

    assert archived(spark, live, queue, tmp_path).messages == 0
    finished(live, 20, queue)
    assert archived(spark, live, queue, tmp_path).messages == 20
    assert ids_in(tmp_path, queue) == Counter(range(60))


def test_only_behind_the_mark_does_the_engine_drop(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = finished(live, 40, history_ms=0)
    for _ in range(5):
        live.run(live.engine.step(ACCOUNT, queue))
    assert live.run(live.engine.marks(ACCOUNT, queue))[0].floor == 0
    archived(spark, live, queue, tmp_path)
    live.work_until(queue, "dropped", 4)
    assert ids_in(tmp_path, queue) == Counter(range(40))
    finished(live, 20, queue)
    archived(spark, live, queue, tmp_path)
    assert ids_in(tmp_path, queue) == Counter(range(60))


@pytest.mark.parametrize("name", [f"{step}{when}" for step in STEPS for when in ("", " done")])
def test_a_job_that_ends_anywhere_is_run_again_and_each_message_is_there_once(
    spark: SparkSession, live: Live, tmp_path: Path, name: str
) -> None:
    queue = finished(live, 40)
    with pytest.raises(OnPurpose):
        archived(spark, live, queue, tmp_path, step=failing_at(name))
    # Whatever the first job left: the queue goes on, and so the next plan is another.
    finished(live, 20, queue)
    archived(spark, live, queue, tmp_path)
    assert ids_in(tmp_path, queue) == Counter(range(60))
    assert live.run(live.engine.marks(ACCOUNT, queue))[0].archived == 6
    files = {path.name for path in (tmp_path / queue).rglob("*.parquet")}
    assert files == {uri.rpartition("/")[2] for uri in open_lake(str(tmp_path / queue)).files()}


def test_a_task_that_fails_half_way_leaves_nothing_that_counts(
    spark: SparkSession, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = finished(live, 40)

    def written(*arguments: Any) -> Any:
        archiving_written(*arguments)
        raise OnPurpose("after the tasks, before their answers")

    archiving_written = archiving.written
    monkeypatch.setattr(archiving, "written", written)
    with pytest.raises(OnPurpose):
        archived(spark, live, queue, tmp_path)
    assert ids_in(tmp_path, queue) == Counter()
    monkeypatch.undo()
    archived(spark, live, queue, tmp_path)
    assert ids_in(tmp_path, queue) == Counter(range(40))


def test_of_two_jobs_at_once_the_lake_takes_one(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = finished(live, 40)

    def step(name: str) -> None:
        if name == "commit":
            archived(spark, live, queue, tmp_path)

    with pytest.raises(LakeMoved):
        archived(spark, live, queue, tmp_path, step=step)
    assert ids_in(tmp_path, queue) == Counter(range(40))
    assert archived(spark, live, queue, tmp_path).messages == 0


def test_several_commits_when_there_is_much(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = finished(live, 60)
    report = archived(spark, live, queue, tmp_path, most_buckets_a_commit=4)
    assert (report.messages, report.marks) == (60, {0: 6})
    assert ids_in(tmp_path, queue) == Counter(range(60))
    # One that made the table, two that added to it.
    assert open_lake(str(tmp_path / queue)).version == 2


def test_what_was_dropped_before_it_was_archived_is_said(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = finished(live, 40, history_ms=0)
    archived(spark, live, queue, tmp_path)
    live.run(live.engine.change_queue(ACCOUNT, queue, {"archive": False}))
    finished(live, 20, queue)
    live.work_until(queue, "dropped", 6)
    with pytest.raises(DataLost, match="buckets 4 to 5 of lane 0 were dropped before they were archived"):
        archived(spark, live, queue, tmp_path)


def test_lanes_and_states_and_others_can_read_it(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, lanes=2, archive=True)
    for _ in range(4):
        live.put(queue, [NewMessage(b"x")] * 10)
    live.drain(queue, 40)
    for lane in (0, 1):
        live.work_until(queue, "repair", 2, lane)
    archived(spark, live, queue, tmp_path)
    table = DeltaTable(str(tmp_path / queue))
    wanted = {(lane, number) for lane in (0, 1) for number in range(20)}
    # Spark 4.3 has no Delta of its own yet: it reads the files that the table names.
    by_spark = spark.read.option("basePath", str(tmp_path / queue)).parquet(*table.file_uris())
    assert {(row.lane, row.number) for row in by_spark.select("lane", "number").collect()} == wanted
    assert by_spark.where("state = 'acked' and enqueued_at is not null").select("id").distinct().count() == 40
    assert set(polars.read_delta(str(tmp_path / queue)).select("lane", "number").rows()) == wanted
    dataset = table.to_pyarrow_dataset()
    assert duckdb.sql("select count(*), count(distinct id) from dataset").fetchall() == [(40, 40)]
    assert dataset.count_rows() == 40


@pytest.mark.parametrize("lake_format", lakes.FORMATS[1:])
@pytest.mark.parametrize("name", ["write done", "commit done"])
def test_other_formats_take_each_message_once(
    spark: SparkSession, live: Live, tmp_path: Path, lake_format: str, name: str
) -> None:
    queue = finished(live, 40)
    with pytest.raises(OnPurpose):
        archived(spark, live, queue, tmp_path, step=failing_at(name), lake_format=lake_format)
    finished(live, 20, queue)

    def step(name: str) -> None:
        if name == "commit":
            archived(spark, live, queue, tmp_path)

    with pytest.raises(LakeMoved):
        archived(spark, live, queue, tmp_path, step=step)
    assert archived(spark, live, queue, tmp_path).messages == 0
    place = str(tmp_path / queue)
    assert open_lake(place).format == lake_format
    assert lakes.ids_in(place) == Counter(range(60))
    assert live.run(live.engine.marks(ACCOUNT, queue))[0].archived == 6
    assert lakes.on_disk(tmp_path / queue) == {file.path for file in open_lake(place).held()}
    with pytest.raises(StoreRefused, match=f"is of the format {lake_format}"):
        archived(spark, live, queue, tmp_path, lake_format="delta")


@pytest.mark.parametrize("lake_format", lakes.FORMATS[1:])
def test_others_can_read_the_other_formats(
    spark: SparkSession, live: Live, tmp_path: Path, lake_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = live.create(**QUICK, lanes=2, archive=True)
    for _ in range(4):
        live.put(queue, [NewMessage(b"x")] * 10)
    live.drain(queue, 40)
    for lane in (0, 1):
        live.work_until(queue, "repair", 2, lane)
    place = tmp_path / queue
    archived(spark, live, queue, tmp_path, lake_format=lake_format)
    files = open_lake(str(place)).files()
    wanted = {(lane, number) for lane in (0, 1) for number in range(20)}
    by_spark = spark.read.option("basePath", str(place)).parquet(*files)
    assert {(row.lane, row.number) for row in by_spark.select("lane", "number").collect()} == wanted
    paths = [file.removeprefix("file://") for file in files]
    by_duckdb = duckdb.read_parquet(paths, hive_partitioning=True)
    assert set(by_duckdb.project("lane, number").fetchall()) == wanted
    if lake_format == "iceberg":
        # Its own way to plan a scan is another package, of which it tells.
        monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
        by_polars = polars.scan_iceberg(IcebergLake(str(place)).table).collect()
        assert IcebergLake(str(place)).table.scan(row_filter="lane = 1").to_arrow().num_rows == 20
    else:
        by_polars = polars.read_parquet(paths, hive_partitioning=True)
    assert set(by_polars.select("lane", "number").rows()) == wanted


def test_it_goes_on_until_it_is_told_to_stop(
    spark: SparkSession, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = finished(live, 20)
    rounds = 0

    def archive(*arguments: Any, **more: Any) -> Archived:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise LakeMoved("another job was faster")
        if rounds == 4:
            finished(live, 10, queue)
            # In the middle of a round: it is brought to its end, but nothing further is begun.
            os.kill(os.getpid(), signal.SIGTERM)
        return archiving_archive(*arguments, **more)

    archiving_archive = archiving.archive
    monkeypatch.setattr(archiving, "archive", archive)
    before = signal.getsignal(signal.SIGTERM)
    job = Job(spark, place_of(live), queue, str(tmp_path))
    repeating.until_stopped(job, argparse.Namespace(format=None, every=0.01, json=True, program="angelhair"))
    assert signal.getsignal(signal.SIGTERM) is before
    assert rounds == 4
    (line,) = capsys.readouterr().out.splitlines()
    assert (json.loads(line)["messages"], json.loads(line)["marks"]) == (20, {"0": 2})
    assert ids_in(tmp_path, queue) == Counter(range(20))
    assert archived(spark, live, queue, tmp_path).messages == 10
