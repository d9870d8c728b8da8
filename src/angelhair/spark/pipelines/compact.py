"""compact: small files of a lake become fewer and larger ones, and what no version needs any more goes.

    plan      which neighbours are small
    write     tasks write and read back one file for each group of them
    commit    the table takes the new files for the old ones, in one step
    vacuum    files that were replaced long enough ago go

A job that ends anywhere leaves a lake with the same messages, each once: before the commit the new files do not count,
after it the old ones do not. It needs no store, and an archiver may be at work at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from angelhair.spark.lakes import Lake, LakeFile, open_lake, table_place
from angelhair.spark.lakes.files import JOINED, Name
from angelhair.spark.pipelines.archive import Step, quietly
from angelhair.spark.pipelines.rewriting import rewritten
from angelhair.spark.pipelines.tasks import in_tasks

TARGET_BYTES = 128 * 1024 * 1024
"""Some million messages: large enough that opening a file costs nothing to speak of, small enough for one task."""

VACUUM_AFTER_SECONDS = 7 * 86_400
"""How long whoever reads an older version can go on with it."""

MOST_GROUPS_A_COMMIT = 100

STEPS = ("plan", "write", "commit", "vacuum")


class Joining(NamedTuple):
    """Files that become one. It travels to a task."""

    table: str
    name: Name
    files: tuple[LakeFile, ...]


@dataclass
class Compacted:
    """What a job did."""

    queue: str
    lake: str
    joined: int = 0
    """Small files that went."""
    files: int = 0
    """Larger ones that came."""
    bytes: int = 0
    messages: int = 0
    vacuumed: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compact(
    spark: SparkSession, queue: str, lake: str, step: Step = quietly, target_bytes: int = TARGET_BYTES,
    vacuum_after_seconds: float = VACUUM_AFTER_SECONDS, most_groups_a_commit: int = MOST_GROUPS_A_COMMIT,
) -> Compacted:
    """Raises `LakeMoved` when another job replaces the same files at the same time, `NoLake` where there is none."""
    table = table_place(lake, queue)
    done = Compacted(queue, table)
    while True:
        step("plan")
        opened = open_lake(table)
        groups = list(islice(joinings(opened, target_bytes), most_groups_a_commit))
        step("plan done")
        if not groups:
            break
        step("write")
        files = in_tasks(spark, join, groups)
        step("write done")
        step("commit")
        opened.replace([file for group in groups for file in group.files], files)
        step("commit done")
        done.joined += sum(len(group.files) for group in groups)
        done.files += len(files)
        done.bytes += sum(file.size_bytes for file in files)
        done.messages += sum(file.rows for file in files)
    step("vacuum")
    done.vacuumed = open_lake(table).vacuum(vacuum_after_seconds)
    step("vacuum done")
    return done


def joinings(lake: Lake, target_bytes: int) -> Iterator[Joining]:
    """Neighbours of one lane, of one incarnation, each less than half of what a file should be. A file that is larger
    is not written again for what came after it; files that somebody else made are left alone."""
    ours = [(file.name, file) for file in lake.held() if file.name is not None]
    ours.sort(key=lambda named: named[0])
    for _, lane in groupby(ours, key=lambda named: (named[0].incarnation, named[0].lane)):
        for group in _groups((file for _, file in lane), target_bytes):
            first, last = group[0].name, group[-1].name
            assert first is not None and last is not None
            yield Joining(lake.place, first._replace(end_bucket=last.end_bucket, made=JOINED), tuple(group))


def _groups(files: Iterable[LakeFile], target_bytes: int) -> Iterator[list[LakeFile]]:
    group: list[LakeFile] = []
    for file in files:
        small = file.size_bytes * 2 < target_bytes
        if group and (not small or sum(each.size_bytes for each in group) + file.size_bytes > target_bytes):
            if len(group) > 1:
                yield group
            group = []
        if small:
            group.append(file)
    if len(group) > 1:
        yield group


def join(work: Joining) -> LakeFile:
    return rewritten(work.table, [file.path for file in work.files], work.name, lambda batch: batch)
