"""archive: finished buckets in the lake, each message once, whatever happens on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.lakes import LakeMoved, open_lake
from angelhair.spark.pipelines import archive as archiving
from angelhair.spark.pipelines.archive import STEPS, Archived, archive
from angelhair.spark.place import Place
from angelhair.spark.refusals import DataLost
from tests.queues import Identities
from tests.spark.live import QUICK, Live


class OnPurpose(Exception):
    pass


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


def failing_at(wanted: str) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name == wanted:
            raise OnPurpose(name)

    return step


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
