"""erase: what a message said is gone from every file of the lake; that it was there is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from angelhair.errors import InvalidRequest, StoreRefused
from angelhair.model import MessageId
from angelhair.spark.lakes import LakeMoved, made_lake, open_lake
from angelhair.spark.lakes.files import JOINED
from angelhair.spark.lakes.sums import verify_file
from angelhair.spark.pipelines.compact import compact
from angelhair.spark.pipelines.erase import STEPS, Erased, erase_from_lake
from angelhair.spark.pipelines.rewriting import rewritten
from tests.spark.lakes import FORMATS, INCARNATION, OnPurpose, failing_at, file_of, filled, ids_in, rows_in

POINTS = [f"{step}{when}" for step in STEPS for when in ("", " done")]
ABOUT_THE_COMMIT = ("write done", "commit done")


def erased(spark: SparkSession, lake: Path, ids: Iterable[str], **more: Any) -> Erased:
    return erase_from_lake(spark, str(lake), "q", [MessageId.parse(text) for text in ids], **more)


def said_anywhere(lake: Path, body: bytes) -> list[str]:
    """Every file of the folder with that body, whether it counts or not; also metadata, which must not repeat it."""
    found = [path for path in lake.rglob("*") if path.is_file() and body in path.read_bytes()]
    found += [
        path for path in lake.rglob("*.parquet")
        if body in pq.read_table(path, columns=["body"], partitioning=None).column("body").to_pylist()
    ]
    return sorted({str(path) for path in found})


def check(lake: Path, gone: set[int], count: int) -> None:
    place = str(lake / "q")
    rows = {row["number"]: row for row in rows_in(place).to_pylist()}
    assert ids_in(place) == Counter(range(count))
    for number, row in rows.items():
        if number in gone:
            assert (row["state"], row["body"], row["attributes"], row["checksum"]) == ("erased", None, None, None)
            assert row["id"] == f"0-{number}" and row["enqueued_at"] is not None
        else:
            assert (row["state"], row["body"]) == ("acked", b"body %d" % number)
            assert row["attributes"] and row["checksum"]
    for number in gone:
        assert said_anywhere(lake, b"body %d" % number) == []
    opened = open_lake(place)
    assert all(verify_file(opened.filesystem, f"{opened.folder}/{file.path}") for file in opened.held())


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_message_said_is_gone_and_its_id_is_not(spark: SparkSession, tmp_path: Path, name: str) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place, name), [2, 3, 4])
    # Leftovers with the same message: of a version before, of a job that ended half way, and of one under way.
    compact(spark, "q", str(tmp_path), target_bytes=20_000)
    opened = open_lake(place)
    file_of(opened, 1, 2)
    rewritten(
        place, [file.path for file in opened.held()][:1],
        opened.held()[0].name._replace(made=JOINED), lambda batch: batch,  # type: ignore[union-attr]
    )
    assert len(said_anywhere(tmp_path, b"body 17")) > 2
    report = erased(spark, tmp_path, ["0-17", "0-35", "0-17"])
    assert (report.erased, report.already, report.absent) == (["0-17", "0-35"], [], [])
    check(tmp_path, {17, 35}, 40)
    again = erased(spark, tmp_path, ["0-17", "0-18"])
    assert (again.erased, again.already, again.files) == (["0-18"], ["0-17"], 1)
    once_more = erased(spark, tmp_path, ["0-17", "0-18"])
    assert (once_more.erased, once_more.files, once_more.deleted) == ([], 0, 0)
    filled(open_lake(place), [5])
    compact(spark, "q", str(tmp_path), vacuum_after_seconds=0)
    assert len(open_lake(place).held()) == 1
    check(tmp_path, {17, 18, 35}, 50)


@pytest.mark.parametrize(
    ("name", "point"),
    [("delta", point) for point in POINTS] + [(name, point) for name in FORMATS[1:] for point in ABOUT_THE_COMMIT],
)
def test_a_job_that_ends_anywhere_is_run_again(spark: SparkSession, tmp_path: Path, name: str, point: str) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place, name), [2])
    with pytest.raises(OnPurpose):
        erased(spark, tmp_path, ["0-17"], step=failing_at(point))
    assert ids_in(place) == Counter(range(20))
    report = erased(spark, tmp_path, ["0-17"])
    assert report.erased + report.already == ["0-17"]
    check(tmp_path, {17}, 20)


def test_what_is_not_in_the_lake_is_said(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place), [2])
    lake = open_lake(place)
    # Buckets 2 and 3 hold void ids only.
    lake.commit(INCARNATION, [], {0: 4})
    filled(open_lake(place), [5])
    with pytest.raises(StoreRefused, match=r"0-50 is not in the lake, which holds lane 0 up to 0-49; erase it once"):
        erased(spark, tmp_path, ["0-17", "0-50"])
    with pytest.raises(StoreRefused, match=r"1-0 is not in the lake, which has nothing of its lane"):
        erased(spark, tmp_path, ["1-0"])
    report = erased(spark, tmp_path, ["0-25"])
    assert (report.erased, report.absent, report.files) == ([], ["0-25"], 0)
    filled(open_lake(place), [1], incarnation="another")
    with pytest.raises(InvalidRequest, match=r"has to be said.*messages of 2 \(0123abcd, another\)"):
        erased(spark, tmp_path, ["0-3"])
    assert erased(spark, tmp_path, ["0-3"], incarnation="another").erased == ["0-3"]
    rows = [row for row in rows_in(place).to_pylist() if row["number"] == 3]
    assert {row["incarnation"]: row["body"] for row in rows} == {"another": None, INCARNATION: b"body 3"}


def test_two_at_once(spark: SparkSession, tmp_path: Path) -> None:
    filled(made_lake(str(tmp_path / "q")), [2])

    def step(name: str) -> None:
        if name == "commit":
            erased(spark, tmp_path, ["0-4"])

    with pytest.raises(LakeMoved):
        erased(spark, tmp_path, ["0-17"], step=step)
    assert erased(spark, tmp_path, ["0-17"]).erased == ["0-17"]
    check(tmp_path, {4, 17}, 20)


def test_files_of_others_are_written_anew_too(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place, "iceberg"), [2])
    lake: Any = open_lake(place)
    # Another tool has joined all there was, twice, under names of its own.
    for _ in range(2):
        lake.table.overwrite(lake.table.scan().to_arrow())
    assert [file.name for file in open_lake(place).held()] == [None]
    assert erased(spark, tmp_path, ["0-17"], incarnation=INCARNATION).erased == ["0-17"]
    assert [file.name for file in open_lake(place).held()] == [None]
    assert erased(spark, tmp_path, ["0-3"], incarnation=INCARNATION).erased == ["0-3"]
    check(tmp_path, {3, 17}, 20)
