"""archive: finished buckets go to the lake, each once; only then does the archive mark move, behind which the engine
may drop them.

    plan      how far is each lane in the lake, how far is it finished
    write     tasks write and read back one file for each run of buckets
    commit    the table takes the files, and how far each lane has come, in one step
    mark      the queue's archive marks follow
    sweep     what a job left behind that ended half way goes

A job that ends anywhere is simply run again. Before the commit nothing counts; after it the marks are all that is
missing, and the next job raises them from what the lake says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.identities import Identities
from angelhair.spark.lakes import Lake, LakeFile, format_at, made_lake, open_lake, table_place
from angelhair.spark.lakes.files import told_apart
from angelhair.spark.looking import Looking
from angelhair.spark.pipelines.tasks import in_tasks
from angelhair.spark.pipelines.writing import Work, write_file
from angelhair.spark.place import Place
from angelhair.spark.planning import QueueShape, Run, cut, look
from angelhair.spark.refusals import DataLost
from angelhair.spark.shaping import Lane

MOST_BUCKETS_A_FILE = 100
MOST_BUCKETS_A_COMMIT = 10_000
"""Some ten million messages: what is done again at most when a job ends half way."""

STEPS = ("plan", "write", "commit", "mark", "sweep")

Step = Callable[[str], None]
"""Told when a step begins, and `STEP done` when it is over. What it raises ends the job there."""


@dataclass
class Archived:
    """What a job did."""

    queue: str
    lake: str
    messages: int = 0
    files: int = 0
    bytes: int = 0
    marks: dict[int, int] = field(default_factory=dict)
    """By lane: buckets below are in the lake and may be dropped."""
    swept: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def quietly(_: str) -> None:
    """For who does not want to be told."""


def never() -> bool:
    """For who is not asked to stop."""
    return False


def archive(
    spark: SparkSession, place: Place, account: str, queue: str, lake: str, identities: Identities,
    step: Step = quietly, most_buckets_a_commit: int = MOST_BUCKETS_A_COMMIT, lake_format: str | None = None,
    stopping: Callable[[], bool] = never, sweeping: bool = True,
) -> Archived:
    """All that is finished now. Raises `LakeMoved` when another job archives the same queue at the same time.

    `stopping`: asked before anything is written; a job that stops still tells the queue of what it has committed.
    `sweeping`: also when nothing was committed; it costs a list of all files.
    """
    table = table_place(lake, queue)
    done = Archived(queue, table)
    while True:
        step("plan")
        with Looking(place) as looking:
            shape = looking.run(lambda store: look(store, account, queue))
        opened = made_lake(table, lake_format)
        wanted = planned(shape, opened, most_buckets_a_commit)
        step("plan done")
        if not wanted or stopping():
            break
        step("write")
        files = written(spark, place, opened, shape, wanted)
        told_apart(files)
        step("write done")
        step("commit")
        opened.commit(shape.incarnation, files, {run.lane: run.end // shape.bucket_size for run in wanted})
        step("commit done")
        done.messages += sum(file.rows for file in files)
        done.files += sum(1 for file in files if file.rows)
        done.bytes += sum(file.size_bytes for file in files if file.rows)
    step("mark")
    done.marks = raise_marks(place, account, queue, shape, opened, identities)
    step("mark done")
    step("sweep")
    if sweeping or done.files:
        done.swept = open_lake(table).sweep(shape.incarnation, [lane.number for lane in shape.lanes])
    step("sweep done")
    return done


def planned(shape: QueueShape, lake: Lake, most_buckets: int) -> list[Run]:
    """By lane, what is finished and not in the lake, from where the lane was left; not more than one commit takes."""
    wanted = []
    left = most_buckets
    for lane in shape.lanes:
        archived = lake.archived(shape.incarnation, lane.number)
        begin = lane.floor if archived is None else archived
        if begin < lane.floor:
            raise DataLost(
                f"buckets {begin} to {lane.floor - 1} of lane {lane.number} were dropped before they were archived: "
                "was `archive` off for a while?"
            )
        end = min(lane.repair, begin + left)
        if end > begin:
            wanted.append(Run(lane.number, begin * shape.bucket_size, end * shape.bucket_size))
            left -= end - begin
    return wanted


def written(spark: SparkSession, place: Place, lake: Lake, shape: QueueShape, wanted: list[Run]) -> list[LakeFile]:
    """By tasks, one file each."""
    now_ms = SystemClock().now().wall_ms
    purged = {lane.number: lane.purged for lane in shape.lanes}
    return in_tasks(
        spark, write_file,
        [
            Work(
                place, lake.place, shape.incarnation,
                Lane(run.lane, shape.bucket_size, purged[run.lane], shape.retention_ms, now_ms), run, lake.lane_inside,
            )
            for run in cut(wanted, shape.bucket_size, 2, MOST_BUCKETS_A_FILE)
        ],
    )


def raise_marks(
    place: Place, account: str, queue: str, shape: QueueShape, lake: Lake, identities: Identities
) -> dict[int, int]:
    """The queue's archive marks follow the lake, also when an earlier job ended before it could raise them."""
    lake = open_lake(lake.place)
    ends = {lane.number: lake.archived(shape.incarnation, lane.number) for lane in shape.lanes}
    with Looking(place, changing=True) as looking:
        return looking.run(lambda store: _raise_marks(Engine(store, identities, SystemClock()), account, queue, ends))


async def _raise_marks(engine: Engine, account: str, queue: str, ends: dict[int, int | None]) -> dict[int, int]:
    return {
        lane: await engine.archived_up_to(account, queue, lane, end) for lane, end in ends.items() if end is not None
    }


@dataclass
class Rehearsed:
    """What a job would do now."""

    queue: str
    lake: str
    buckets: dict[int, int] = field(default_factory=dict)
    """By lane: finished, and not in the lake."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def rehearsed(place: Place, account: str, queue: str, lake: str) -> Rehearsed:
    table = table_place(lake, queue)
    with Looking(place) as looking:
        shape = looking.run(lambda store: look(store, account, queue))
    opened = None if format_at(table) is None else open_lake(table)
    buckets = {}
    for lane in shape.lanes:
        archived = None if opened is None else opened.archived(shape.incarnation, lane.number)
        buckets[lane.number] = max(0, lane.repair - (lane.floor if archived is None else archived))
    return Rehearsed(queue, table, buckets)
