"""erase: what a message said goes from the lake for good. Its row stays, without body and attributes, with the state
`erased`, so that every id is still accounted for.

    plan      which files hold the ids
    write     tasks write and read back those that have something to erase
    commit    the table takes the new files for the old ones, in one step
    delete    every file with what was erased goes at once, of older versions and of jobs that ended half way too

A job that ends anywhere is run again. What was erased before is not erased twice, but its leftovers are looked for
again. Older versions of the table can no longer be read where they need such a file: this is what is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession

from angelhair.errors import InvalidRequest, StoreRefused
from angelhair.model import MessageId
from angelhair.spark.lakes import Lake, LakeFile, folder_of, open_lake, table_place
from angelhair.spark.lakes.files import ERASED, PRIVATE, Name, name_of
from angelhair.spark.pipelines.archive import Step, quietly
from angelhair.spark.pipelines.rewriting import rewritten
from angelhair.spark.pipelines.tasks import in_tasks

STATE = "erased"
"""The state of a message that says nothing any more."""

GOING = (*PRIVATE, "checksum")
"""What goes: by its checksum, too, somebody could tell whether a body was a certain one."""

STEPS = ("plan", "write", "commit", "delete")


class Erasing(NamedTuple):
    """A file, and the ids of it that go. It travels to a task."""

    table: str
    file: LakeFile
    incarnation: str
    numbers: frozenset[int]


class Found(NamedTuple):
    """What a task found and did."""

    old: LakeFile
    new: LakeFile | None
    """None when nothing of it had to be erased."""
    erased: frozenset[int]
    before: frozenset[int]
    """What had been erased before."""
    buckets: frozenset[int]
    """Where they all are."""


@dataclass
class Erased:
    """What a job did."""

    queue: str
    lake: str
    erased: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    """Ids that had been erased before."""
    absent: list[str] = field(default_factory=list)
    """Ids in the range of the lake that no message has: reserved, and never written."""
    files: int = 0
    """Files that were written anew."""
    deleted: int = 0
    """Files that are gone for it."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def erase_from_lake(
    spark: SparkSession, lake: str, queue: str, ids: Iterable[MessageId], incarnation: str | None = None,
    step: Step = quietly,
) -> Erased:
    """`incarnation`: of which of the queues that had this name; without it, of the only one that the lake holds.

    Raises `LakeMoved` when another job replaces the same files at the same time, and `StoreRefused` for ids that are
    not in the lake yet.
    """
    table = table_place(lake, queue)
    wanted = sorted(set(ids))
    done = Erased(queue, table)
    step("plan")
    opened = open_lake(table)
    incarnation = incarnation or the_incarnation(opened)
    works = planned(opened, incarnation, wanted)
    step("plan done")
    step("write")
    found = in_tasks(spark, erase_file, works)
    step("write done")
    step("commit")
    changed = [each for each in found if each.new is not None]
    if changed:
        files = [each.new for each in changed if each.new is not None]
        opened.replace([each.old for each in changed], files, changes=True)
    step("commit done")
    step("delete")
    done.deleted = deleted(open_lake(table), incarnation, found)
    step("delete done")
    done.files = len(changed)
    done.erased = _ids((each.old.lane, each.erased) for each in found)
    done.already = _ids((each.old.lane, each.before) for each in found)
    done.absent = [str(each) for each in wanted if str(each) not in {*done.erased, *done.already}]
    return done


def the_incarnation(lake: Lake) -> str:
    found = {file.name.incarnation for file in lake.held() if file.name is not None}
    if len(found) != 1:
        named = ", ".join(sorted(found)) or "none"
        raise InvalidRequest(
            "incarnation", f"has to be said: the lake at {lake.place} holds messages of {len(found)} ({named})"
        )
    return found.pop()


def planned(lake: Lake, incarnation: str, ids: Sequence[MessageId]) -> list[Erasing]:
    """By the statistics on id. Raises for what comes after all that the lane has in the lake."""
    held = [file for file in lake.held() if file.name is None or file.name.incarnation == incarnation]
    by_lane: Mapping[int, list[LakeFile]] = defaultdict(list)
    for file in held:
        by_lane[file.lane].append(file)
    numbers: Mapping[LakeFile, set[int]] = defaultdict(set)
    for each in ids:
        files = by_lane[each.lane]
        last = max((file.last for file in files), default=-1)
        if each.number > last:
            holds = f"holds lane {each.lane} up to {MessageId(each.lane, last)}" if files else "has nothing of its lane"
            raise StoreRefused(f"{each} is not in the lake, which {holds}; erase it once it has been archived")
        for file in files:
            if file.first <= each.number <= file.last:
                numbers[file].add(each.number)
    return [Erasing(lake.place, file, incarnation, frozenset(some)) for file, some in numbers.items()]


def erase_file(work: Erasing) -> Found:
    filesystem, folder = folder_of(work.table)
    erased: set[int] = set()
    before: set[int] = set()
    buckets: set[int] = set()
    rows = pq.read_table(
        f"{folder}/{work.file.path}", filesystem=filesystem, partitioning=None,
        columns=["number", "bucket", "state", "incarnation"],
        filters=pc.field("number").isin(sorted(work.numbers)) & (pc.field("incarnation") == work.incarnation),
    )
    for row in rows.to_pylist():
        (before if row["state"] == STATE else erased).add(row["number"])
        buckets.add(row["bucket"])
    new = None
    if erased:
        new = rewritten(
            work.table, [work.file.path], _new_name(work.file), lambda batch: without(batch, erased, work.incarnation)
        )
    return Found(work.file, new, frozenset(erased), frozenset(before), frozenset(buckets))


def _new_name(file: LakeFile) -> Name:
    """Of a file that somebody else made, a name that says nothing of buckets."""
    name = file.name
    return name._replace(made=ERASED) if name is not None else Name("", file.lane, 0, 0, ERASED)


def without(batch: pa.RecordBatch, numbers: Collection[int], incarnation: str) -> pa.RecordBatch:
    """The same rows, with nothing said in these."""
    chosen = pc.and_(
        pc.is_in(batch.column("number"), pa.array(sorted(numbers), pa.int64())),
        pc.equal(batch.column("incarnation"), incarnation),
    )
    columns = []
    for column in batch.schema:
        values = batch.column(column.name)
        if column.name in GOING:
            values = pc.if_else(chosen, pa.scalar(None, column.type), values)
        elif column.name == "state":
            values = pc.if_else(chosen, STATE, values)
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def deleted(lake: Lake, incarnation: str, found: Sequence[Found]) -> int:
    """Everything in the folder with a bucket of what was erased, now or before, that does not count: files that were
    replaced, and what jobs left or are writing, whose commit would be refused as its sources are gone."""
    counting = {file.path for file in lake.held()}
    replaced = lake.replaced()
    buckets = {(each.old.lane, bucket) for each in found for bucket in each.buckets}
    numbers = frozenset[int]().union(*(each.erased | each.before for each in found))

    def holds(info: fs.FileInfo) -> bool:
        path = lake.below(info.path)
        name = name_of(path)
        if path in counting:
            return False
        if name is None:
            # Somebody else's, which the table has known; its name says nothing.
            return path in replaced and _may_hold(lake.filesystem, info.path, numbers)
        return name.incarnation == incarnation and any(
            lane == name.lane and name.first_bucket <= bucket < name.end_bucket for lane, bucket in buckets
        )

    return lake.delete(lake.below(info.path) for info in lake.stored() if holds(info))


def _may_hold(filesystem: fs.FileSystem, path: str, numbers: Collection[int]) -> bool:
    """By the statistics that the file itself has; without them it may."""
    with filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as file:
        at = file.schema_arrow.get_field_index("number")
        groups = [file.metadata.row_group(group).column(at) for group in range(file.metadata.num_row_groups)]
    return any(
        not group.is_stats_set or any(group.statistics.min <= number <= group.statistics.max for number in numbers)
        for group in groups
    )


def _ids(found: Iterable[tuple[int, Collection[int]]]) -> list[str]:
    return [str(each) for each in sorted(MessageId(lane, number) for lane, numbers in found for number in numbers)]
