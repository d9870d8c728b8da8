"""What a task of the archive does: reads a run of finished buckets, writes one Parquet file, reads that back.

What was read from the queue is summed up before anything is done to it, and the file once more from the disk. Only if
both say the same does the file leave the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from angelhair.spark.columns import COLUMNS, raw_names
from angelhair.spark.lakes.drafts import Draft
from angelhair.spark.lakes.files import ARCHIVED, FILE_SCHEMA, KEPT, SCHEMA, LakeFile, Name
from angelhair.spark.lakes.sums import Sum, checksums_of
from angelhair.spark.place import Place
from angelhair.spark.planning import Run
from angelhair.spark.reading.runs import read_run
from angelhair.spark.refusals import DataLost
from angelhair.spark.shaping import Lane, bodies_of, shaped


class Work(NamedTuple):
    """One file to write, and all that it takes. It travels to a task."""

    place: Place
    table: str
    incarnation: str
    lane: Lane
    run: Run
    lane_inside: bool = False


def write_file(work: Work) -> LakeFile:
    """The file, under its name, whole and read back. Doing it again, or twice at once, leads to the same file."""
    buckets = work.run.buckets(work.lane.bucket_size)
    name = Name(work.incarnation, work.run.lane, buckets.start, buckets.stop, ARCHIVED)
    read = Sum()
    with Draft(work.table, name, SCHEMA if work.lane_inside else FILE_SCHEMA) as draft:
        for raw in _batches(work):
            bodies = bodies_of(raw)
            read = read.and_of(raw.column("number"), bodies)
            draft.add(_kept(raw, checksums_of(bodies), work))
        return draft.finish(read)


def _batches(work: Work) -> Iterator[pa.RecordBatch]:
    def lost(floor: int) -> None:
        raise DataLost(f"buckets below {floor} of lane {work.run.lane} were dropped before they were archived")

    names = raw_names(KEPT)
    return read_run(
        work.place, work.incarnation, work.lane.bucket_size, work.run, names, work.lane.now_ms, lost
    )


def _kept(raw: pa.RecordBatch, checksums: pa.Array, work: Work) -> pa.RecordBatch:
    """The message's columns, and those that the lake adds."""
    columns = list(shaped(raw, KEPT, "binary", work.lane).columns)
    columns.append(checksums)
    columns.append(pa.repeat(pa.scalar(work.incarnation, pa.string()), raw.num_rows))
    if not work.lane_inside:
        return pa.RecordBatch.from_arrays(columns, schema=FILE_SCHEMA)
    columns.append(pa.repeat(pa.scalar(work.run.lane, COLUMNS["lane"].arrow), raw.num_rows))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
