"""The formats of a lake: the same verbs, the same promises."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import fs

from angelhair.errors import InvalidRequest, StoreRefused
from angelhair.spark.lakes import Lake, LakeMoved, NoLake, format_at, made_lake, manifest, open_lake
from angelhair.spark.lakes.files import FILE_SCHEMA, JOINED, RESERVED, SCHEMA, UNFINISHED, LakeFile, settle, table_place
from angelhair.spark.lakes.iceberg import IcebergLake
from angelhair.spark.lakes.port import DAY_SECONDS
from angelhair.spark.lakes.sums import verify_file
from angelhair.spark.pipelines.insight.batches import FOLDER
from angelhair.spark.pipelines.replay import NOTES
from angelhair.spark.pipelines.rewriting import rewritten
from angelhair.spark.pipelines.run import REPORTS
from tests.spark.lakes import FORMATS, INCARNATION, file_of, filled, ids_in, on_disk, rows_in

DISK = fs.LocalFileSystem()

every_format = pytest.mark.parametrize("name", FORMATS)


def joined(lake: Lake, files: list[LakeFile]) -> LakeFile:
    first, last = files[0].name, files[-1].name
    assert first is not None and last is not None
    name = first._replace(end_bucket=last.end_bucket, made=JOINED)
    return rewritten(lake.place, [file.path for file in files], name, lambda batch: batch)


def in_order(lake: Lake) -> list[LakeFile]:
    return sorted(lake.held(), key=lambda file: file.first)


@every_format
def test_files_count_from_the_commit_on_and_the_lanes_are_told_with_it(tmp_path: Path, name: str) -> None:
    place = str(tmp_path / "q")
    lake = made_lake(place, name)
    assert (lake.format, format_at(place), lake.archived(INCARNATION, 0)) == (name, name, None)
    file = file_of(lake, 0, 2)
    assert ids_in(place) == Counter()
    lake.commit(INCARNATION, [file], {0: 2})
    filled(open_lake(place), [3], lane=1)
    opened = open_lake(place)
    assert [opened.archived(INCARNATION, lane) for lane in (0, 1, 2)] == [2, 3, None]
    assert opened.archived("another", 0) is None
    held = {held.path: held for held in opened.held()}[file.path]
    # Statistics on id: a reader leaves out files without opening them.
    assert held[:6] == file[:6] and (held.rows, held.first, held.last) == (20, 0, 19)
    assert ids_in(place) == Counter([*range(20), *range(30)])


@every_format
def test_a_commit_without_messages_still_moves_the_lane(tmp_path: Path, name: str) -> None:
    lake = made_lake(str(tmp_path / "q"), name)
    lake.commit(INCARNATION, [], {0: 7})
    assert open_lake(lake.place).archived(INCARNATION, 0) == 7
    filled(open_lake(lake.place), [8])
    assert ids_in(lake.place) == Counter(range(70, 80))


@every_format
def test_of_two_that_planned_the_same_buckets_the_lake_takes_one(tmp_path: Path, name: str) -> None:
    lake = made_lake(str(tmp_path / "q"), name)
    filled(lake, [1])
    one, other, third = (open_lake(lake.place) for _ in range(3))
    one.commit(INCARNATION, [file_of(one, 1, 3)], {0: 3})
    with pytest.raises(LakeMoved):
        other.commit(INCARNATION, [file_of(other, 1, 2)], {0: 2})
    # Not even when all that the second has to say is that there was nothing.
    with pytest.raises(LakeMoved):
        third.commit(INCARNATION, [], {0: 2})
    assert open_lake(lake.place).archived(INCARNATION, 0) == 3
    assert ids_in(lake.place) == Counter(range(30))


@every_format
def test_many_at_once(tmp_path: Path, name: str) -> None:
    """Each has a lane of its own, and all want one more: of that each bucket is taken once."""
    place = str(tmp_path / "q")
    made_lake(place, name)

    def work(lane: int) -> int:
        filled(open_lake(place), [1, 2], lane)
        won = 0
        for _ in range(3):
            lake = open_lake(place)
            begin = lake.archived(INCARNATION, 9) or 0
            try:
                lake.commit(INCARNATION, [file_of(lake, begin, begin + 1, 9)], {9: begin + 1})
                won += 1
            except LakeMoved:
                continue
        return won

    with ThreadPoolExecutor(4) as pool:
        won = sum(pool.map(work, range(4)))
    opened = open_lake(place)
    assert won >= 1
    assert [opened.archived(INCARNATION, lane) for lane in (0, 1, 2, 3, 9)] == [2, 2, 2, 2, won]
    assert ids_in(place) == Counter([*range(20)] * 4) + Counter(range(won * 10))


@every_format
def test_lanes_do_not_stand_in_each_others_way(tmp_path: Path, name: str) -> None:
    lake = made_lake(str(tmp_path / "q"), name)
    one, other = open_lake(lake.place), open_lake(lake.place)
    one.commit(INCARNATION, [file_of(one, 0, 1, lane=0)], {0: 1})
    other.commit(INCARNATION, [file_of(other, 0, 2, lane=1)], {1: 2})
    opened = open_lake(lake.place)
    assert [opened.archived(INCARNATION, lane) for lane in (0, 1)] == [1, 2]
    assert len(opened.held()) == 2


@every_format
def test_files_are_replaced_beside_an_archiver_and_never_twice(tmp_path: Path, name: str) -> None:
    lake = made_lake(str(tmp_path / "q"), name)
    filled(lake, [1, 2])
    archiver, one, other = (open_lake(lake.place) for _ in range(3))
    small = in_order(one)
    ours, theirs = joined(one, small), joined(other, small)
    assert ours.path != theirs.path
    filled(open_lake(lake.place), [3])
    one.replace(small, [ours])
    with pytest.raises(LakeMoved):
        other.replace(small, [theirs])
    # The archiver planned before both.
    with pytest.raises(LakeMoved):
        archiver.commit(INCARNATION, [], {0: 3})
    planned = open_lake(lake.place)
    last = in_order(open_lake(lake.place))
    open_lake(lake.place).replace(last, [joined(planned, last)])
    planned.commit(INCARNATION, [file_of(planned, 3, 4)], {0: 4})
    assert open_lake(lake.place).archived(INCARNATION, 0) == 4
    assert ids_in(lake.place) == Counter(range(40))


@every_format
def test_what_was_replaced_stays_until_nobody_needs_it(tmp_path: Path, name: str) -> None:
    lake = made_lake(str(tmp_path / "q"), name)
    filled(lake, [1, 2])
    small = in_order(open_lake(lake.place))
    opened = open_lake(lake.place)
    opened.replace(small, [joined(opened, small)])
    opened = open_lake(lake.place)
    assert opened.replaced() == {file.path for file in small}
    assert opened.sweep(INCARNATION, [0]) == opened.vacuum(DAY_SECONDS) == 0
    assert all((tmp_path / "q" / file.path).exists() for file in small)
    assert open_lake(lake.place).vacuum(0) == 2
    assert on_disk(tmp_path / "q") == {file.path for file in open_lake(lake.place).held()}
    assert ids_in(lake.place) == Counter(range(20))
    assert open_lake(lake.place).vacuum(0) == 0
    filled(open_lake(lake.place), [3])
    assert open_lake(lake.place).archived(INCARNATION, 0) == 3


@every_format
def test_only_what_can_never_count_is_swept(tmp_path: Path, name: str) -> None:
    lake = made_lake(str(tmp_path / "q"), name)
    filled(lake, [2])
    left = file_of(lake, 0, 1)
    ahead = file_of(lake, 2, 3)
    being_joined = joined(lake, in_order(open_lake(lake.place)))
    scratch = tmp_path / "q" / UNFINISHED / "lane=0" / "x.parquet"
    scratch.write_bytes(b"half a file")
    assert open_lake(lake.place).sweep(INCARNATION, [0]) == 1
    paths = {left.path, ahead.path, being_joined.path}
    assert paths & on_disk(tmp_path / "q") == {ahead.path, being_joined.path}
    for path in (scratch, tmp_path / "q" / being_joined.path):
        os.utime(path, (time.time() - 2 * DAY_SECONDS,) * 2)
    assert open_lake(lake.place).sweep(INCARNATION, [0]) == 2
    assert open_lake(lake.place).sweep("another", [0]) == 0
    assert ids_in(lake.place) == Counter(range(20))


@every_format
def test_an_older_lake_gains_the_columns_that_are_new(tmp_path: Path, name: str) -> None:
    older = SCHEMA.remove(SCHEMA.get_field_index("checksum"))
    place = str(tmp_path / "q")
    (tmp_path / "q").mkdir()
    lake = type(made_lake(str(tmp_path / "other"), name)).made(place, older)
    columns = older if lake.lane_inside else FILE_SCHEMA.remove(FILE_SCHEMA.get_field_index("checksum"))
    lake.commit(INCARNATION, [file_of(lake, 0, 1, schema=columns)], {0: 1})
    filled(made_lake(place), [2])
    sums = rows_in(place).column("checksum").to_pylist()
    assert sums[:10] == [None] * 10 and None not in sums[10:]
    if name == "delta":
        table = DeltaTable(place).to_pyarrow_table().sort_by("number")
        assert table.column("checksum").to_pylist() == sums
    if name == "iceberg":
        table = IcebergLake(place).table.scan().to_arrow().sort_by("number")
        assert table.column("checksum").to_pylist() == sums
    # An older version goes on writing beside a newer one, and files of both can be joined.
    lake = type(lake).made(place, older)
    lake.commit(INCARNATION, [file_of(lake, 2, 3, schema=columns)], {0: 3})
    files = in_order(open_lake(place))
    lake = open_lake(place)
    lake.replace(files, [joined(lake, files)])
    assert rows_in(place).column("checksum").to_pylist() == [*sums, *[None] * 10]
    assert ids_in(place) == Counter(range(30))


def test_a_lake_keeps_its_format(tmp_path: Path) -> None:
    place = str(tmp_path / "q")
    with pytest.raises(NoLake, match="there is no lake at"):
        open_lake(place)
    assert made_lake(place).format == "delta"
    assert made_lake(place, "delta").format == made_lake(place).format == "delta"
    with pytest.raises(StoreRefused, match=r"is of the format delta, which --format iceberg does not change"):
        made_lake(place, "iceberg")
    (tmp_path / "q" / "_manifest").mkdir()
    with pytest.raises(StoreRefused, match="looks like a lake of delta and of parquet"):
        open_lake(place)


@every_format
def test_addresses_go_the_way_of_object_stores(tmp_path: Path, name: str) -> None:
    place = f"file://{tmp_path}/q"
    filled(made_lake(place, name), [1, 2])
    lake = open_lake(place)
    assert all(address.startswith("file://") for address in lake.files())
    assert ids_in(place) == Counter(range(20))
    small = in_order(lake)
    lake.replace(small, [joined(lake, small)])
    assert open_lake(place).vacuum(0) == 2
    assert ids_in(place) == Counter(range(20))
    assert ids_in(str(tmp_path / "q")) == Counter(range(20))


def test_what_an_object_store_cannot_do_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="take --format delta there"):
        made_lake("mock:///history/q", "parquet")
    with pytest.raises(StoreRefused, match="PYICEBERG_CATALOG__ANGELHAIR__URI"):
        made_lake("mock:///history/q", "iceberg")


def test_a_manifest_is_never_seen_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = made_lake(str(tmp_path / "q"), "parquet")
    filled(lake, [1])

    def torn(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", torn)
    with pytest.raises(KeyboardInterrupt):
        filled(open_lake(lake.place), [2])
    monkeypatch.undo()
    assert open_lake(lake.place).version == 1
    assert ids_in(lake.place) == Counter(range(10))
    filled(open_lake(lake.place), [2])
    chain = sorted((tmp_path / "q" / "_manifest").iterdir())
    assert [json.loads(path.read_text())["version"] for path in chain] == [0, 1, 2]


def test_a_long_chain_of_manifests_is_read_from_the_last_complete_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "COMPLETE_EVERY", 4)
    lake = made_lake(str(tmp_path / "q"), "parquet")
    filled(lake, range(1, 7))
    small = in_order(open_lake(lake.place))[:2]
    opened = open_lake(lake.place)
    opened.replace(small, [joined(opened, small)])
    filled(open_lake(lake.place), [7])
    opened = open_lake(lake.place)
    assert (opened.version, opened.archived(INCARNATION, 0)) == (8, 7)
    assert opened.replaced() == {file.path for file in small}
    assert opened.vacuum(0) == 2
    # The one that says all, and that the two are forgotten.
    assert [path.stem[-1] for path in sorted((tmp_path / "q" / "_manifest").iterdir())] == ["8", "9"]
    assert open_lake(lake.place).replaced() == frozenset()
    assert ids_in(lake.place) == Counter(range(70))
    (tmp_path / "q" / "_manifest" / f"{8:020d}.json").unlink()
    with pytest.raises(StoreRefused, match="is missing"):
        open_lake(lake.place)


def test_snapshots_of_others_say_nothing_of_lanes_and_hide_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "q")
    filled(made_lake(place, "iceberg"), [1])
    table = IcebergLake(place).table
    table.append(table.scan().to_arrow().slice(0, 0))
    assert open_lake(place).archived(INCARNATION, 0) == 1
    filled(open_lake(place), [2])
    table = IcebergLake(place).table
    table.append(table.scan().to_arrow().slice(0, 0))
    ours = [each.snapshot_id for each in table.snapshots()][:-1]
    table.maintenance.expire_snapshots().by_ids(ours).commit()
    with pytest.raises(StoreRefused, match="does not know how far it is"):
        open_lake(place).archived(INCARNATION, 0)


def test_a_file_knows_what_is_in_it_and_damage_is_found(tmp_path: Path) -> None:
    lake = made_lake(str(tmp_path / "q"))
    file = file_of(lake, 0, 3)
    path = tmp_path / "q" / file.path
    settle(DISK, str(path))
    found = verify_file(DISK, str(path))
    assert found and found.kept == found.found and found.found is not None
    assert (found.found.rows, found.found.digest) == (30, file.digest)
    read = pq.read_table(path, partitioning=None)
    # No statistics of what messages say: they would stay in places where nobody looks for them.
    columns = pq.read_metadata(path).row_group(0)
    told = {columns.column(at).path_in_schema: columns.column(at).is_stats_set for at in range(columns.num_columns)}
    assert (told["number"], told["id"], told["body"], told["attributes"]) == (True, True, False, False)

    bodies = read.column("body").to_pylist()
    bodies[7] = b"body 8"
    changed = read.set_column(read.schema.get_field_index("body"), "body", pa.array(bodies, pa.binary()))
    swapped = read.column("body").take(pa.array([1, 0, *range(2, 30)]))
    exchanged = read.set_column(read.schema.get_field_index("body"), "body", swapped)
    for damage, reason in (
        (changed, "30 messages were written and 30 are in it, or others"),
        (exchanged, "30 messages were written and 30 are in it, or others"),
        (read.slice(1), "30 messages were written and 29 are in it"),
        (pa.concat_tables([read, read.slice(3, 1)]), "30 messages were written and 31 are in it"),
    ):
        pq.write_table(damage.replace_schema_metadata(pq.read_metadata(path).metadata), tmp_path / "damaged.parquet")
        looked = verify_file(DISK, str(tmp_path / "damaged.parquet"))
        assert not looked and reason in looked.reason

    content = bytearray(path.read_bytes())
    for flipped in range(0, len(content), 41):
        content[flipped] ^= 1
        path.write_bytes(content)
        content[flipped] ^= 1
        assert not verify_file(DISK, str(path)), flipped
    path.write_bytes(content)
    assert verify_file(DISK, str(path))
    (tmp_path / "short.parquet").write_bytes(content[:200])
    assert "cannot be read" in verify_file(DISK, str(tmp_path / "short.parquet")).reason
    assert verify_file(DISK, str(tmp_path / "nowhere.parquet")).reason == "it is not there"


def test_a_queue_cannot_have_the_name_of_a_lakes_own_folder() -> None:
    assert set(RESERVED) == {FOLDER, REPORTS, NOTES}
    for name in RESERVED:
        with pytest.raises(InvalidRequest, match="has no place in a lake"):
            table_place("lake", name)
