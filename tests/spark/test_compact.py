"""compact: fewer and larger files, the same messages, each once, whatever happens on the way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from angelhair.errors import StoreRefused
from angelhair.spark.lakes import LakeMoved, NoLake, made_lake, open_lake
from angelhair.spark.lakes.sums import verify_file
from angelhair.spark.pipelines.compact import STEPS, Compacted, compact, joinings
from tests.spark.lakes import (
    FORMATS,
    INCARNATION,
    OnPurpose,
    failing_at,
    file_of,
    filled,
    ids_in,
    on_disk,
    rows_in,
)

POINTS = [f"{step}{when}" for step in STEPS for when in ("", " done")]
ABOUT_THE_COMMIT = ("write done", "commit done")


def compacted(spark: SparkSession, lake: Path, **more: Any) -> Compacted:
    return compact(spark, "q", str(lake), **{"vacuum_after_seconds": 0, **more})


@pytest.mark.parametrize("name", FORMATS)
def test_small_files_of_a_lane_become_one(spark: SparkSession, tmp_path: Path, name: str) -> None:
    place = str(tmp_path / "q")
    lake = made_lake(place, name)
    filled(lake, [1, 2, 4])
    filled(open_lake(place), [1, 2], lane=1)
    filled(open_lake(place), [1, 2], incarnation="another")
    before = rows_in(place).sort_by([("incarnation", "ascending"), ("number", "ascending"), ("id", "ascending")])
    report = compacted(spark, tmp_path, vacuum_after_seconds=7 * 86_400)
    assert (report.joined, report.files, report.messages, report.vacuumed) == (7, 3, 80, 0)
    opened = open_lake(place)
    assert [opened.archived(INCARNATION, lane) for lane in (0, 1)] == [4, 2]
    assert {file.name[:4] for file in opened.held() if file.name} == {
        (INCARNATION, 0, 0, 4), (INCARNATION, 1, 0, 2), ("another", 0, 0, 2)
    }
    assert all(verify_file(opened.filesystem, f"{opened.folder}/{file.path}") for file in opened.held())
    after = rows_in(place).sort_by([("incarnation", "ascending"), ("number", "ascending"), ("id", "ascending")])
    assert after.equals(before)
    # Whoever reads an older version goes on until it is vacuumed.
    assert len(on_disk(tmp_path / "q")) == 10
    assert compacted(spark, tmp_path).vacuumed == 7
    assert on_disk(tmp_path / "q") == {file.path for file in open_lake(place).held()}
    filled(open_lake(place), [5])
    assert ids_in(place) == Counter([*range(50), *range(20), *range(20)])


def test_a_delta_table_tells_its_streams_that_nothing_changed(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place), [1, 2])
    version = open_lake(place).version
    compacted(spark, tmp_path, vacuum_after_seconds=3600)
    log = (tmp_path / "q" / "_delta_log" / f"{version + 1:020d}.json").read_text()
    assert '"dataChange":false' in log and '"dataChange":true' not in log
    assert DeltaTable(place, version=version).to_pyarrow_table().num_rows == 20
    assert set(polars.read_delta(place).get_column("number")) == set(range(20))


@pytest.mark.parametrize(
    ("name", "point"),
    [("delta", point) for point in POINTS] + [(name, point) for name in FORMATS[1:] for point in ABOUT_THE_COMMIT],
)
def test_a_job_that_ends_anywhere_leaves_each_message_once(
    spark: SparkSession, tmp_path: Path, name: str, point: str
) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place, name), [1, 2, 3])
    with pytest.raises(OnPurpose):
        compacted(spark, tmp_path, step=failing_at(point))
    assert ids_in(place) == Counter(range(30))
    filled(open_lake(place), [4])
    compacted(spark, tmp_path)
    assert ids_in(place) == Counter(range(40))
    assert len(open_lake(place).held()) == 1
    assert open_lake(place).archived(INCARNATION, 0) == 4


def test_an_archiver_and_another_that_compacts_at_the_same_time(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place), [1, 2])

    def archiving(name: str) -> None:
        if name == "commit" and open_lake(place).archived(INCARNATION, 0) == 2:
            filled(open_lake(place), [3])

    assert compacted(spark, tmp_path, step=archiving).joined == 4
    assert ids_in(place) == Counter(range(30))
    filled(open_lake(place), [4, 5])

    def compacting(name: str) -> None:
        if name == "commit":
            compacted(spark, tmp_path)

    with pytest.raises(LakeMoved):
        compacted(spark, tmp_path, step=compacting)
    assert ids_in(place) == Counter(range(50))


def test_large_files_are_left_alone(tmp_path: Path) -> None:
    lake = made_lake(str(tmp_path / "q"))
    filled(lake, [1, 2, 3, 4, 5])
    lake = open_lake(lake.place)
    size = max(file.size_bytes for file in lake.held())

    def spans(target: int) -> list[tuple[int, int]]:
        return [(group.name.first_bucket, group.name.end_bucket) for group in joinings(lake, target)]

    assert spans(size) == []
    assert spans(2 * size + 2) == [(0, 2), (2, 4)]
    assert spans(4 * size) == [(0, 4)]
    assert spans(100 * size) == [(0, 5)]


def test_a_damaged_file_is_not_passed_on(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "q")
    lake = made_lake(place)
    filled(lake, [1, 2])
    other = file_of(lake, 5, 6)
    damaged = open_lake(place).held()[0]
    (tmp_path / "q" / other.path).replace(tmp_path / "q" / damaged.path)
    # A whole file, and not the one of that name.
    with pytest.raises(StoreRefused, match=f"^{damaged.path} is damaged: its bytes are not those that were written"):
        compacted(spark, tmp_path)
    content = (tmp_path / "q" / damaged.path).read_bytes()
    # In a page, and in the footer.
    for at in (100, content.rindex(b"checksum")):
        bad = bytearray(content)
        bad[at] ^= 0xFF
        (tmp_path / "q" / damaged.path).write_bytes(bad)
        with pytest.raises(StoreRefused, match=f"^{damaged.path} is damaged: "):
            compacted(spark, tmp_path)
    assert len(open_lake(place).held()) == 2
    assert not list((tmp_path / "q" / "_unfinished").rglob("*.parquet"))


def test_where_there_is_no_lake(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoLake, match="there is no lake at"):
        compacted(spark, tmp_path)
    assert issubclass(NoLake, StoreRefused)
