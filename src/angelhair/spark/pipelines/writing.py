"""What a task of the archive does: reads a run of finished buckets, writes one Parquet file, reads that back.

What was read from the queue is summed up before anything is done to it, and the file once more from the disk. Only if
both say the same does the file leave the task.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from angelhair.errors import StoreRefused
from angelhair.spark.columns import arrow_schema_of, raw_names
from angelhair.spark.lake import KEPT, UNFINISHED, LakeFile, file_name, folder_of
from angelhair.spark.place import Place
from angelhair.spark.planning import Run
from angelhair.spark.reading.runs import read_run
from angelhair.spark.refusals import DataLost
from angelhair.spark.shaping import Lane, shaped

COMPRESSION = "zstd"

class Work(NamedTuple):
    """One file to write, and all that it takes. It travels to a task."""

    place: Place
    table: str
    incarnation: str
    lane: Lane
    run: Run


class Sum(NamedTuple):
    """What is in a run of messages: how many, and a number that changes with any id or body."""

    rows: int = 0
    digest: int = 0

    def and_of(self, numbers: pa.Array, bodies: pa.Array) -> Sum:
        """The order does not matter: each message is summed up by itself."""
        digest = self.digest
        for number, body in zip(numbers.to_pylist(), bodies.to_pylist(), strict=True):
            digest ^= crc32(body, number & 0xFFFFFFFF) ^ (number << 32)
        return Sum(self.rows + len(numbers), digest)


def write_file(work: Work) -> LakeFile:
    """The file, under its name, whole and read back. Doing it again, or twice at once, leads to the same file."""
    run, size = work.run, work.lane.bucket_size
    buckets = run.buckets(size)
    name = file_name(work.incarnation, run.lane, buckets.start, buckets.stop)
    filesystem, folder = folder_of(work.table)
    scratch = posixpath.join(folder, UNFINISHED, f"{uuid.uuid4().hex}.parquet")
    final = posixpath.join(folder, name)
    filesystem.create_dir(posixpath.dirname(scratch), recursive=True)
    filesystem.create_dir(posixpath.dirname(final), recursive=True)
    first, last, read = -1, -1, Sum()
    with pq.ParquetWriter(scratch, _file_schema(), filesystem=filesystem, compression=COMPRESSION) as writer:
        for raw in _batches(work):
            numbers = raw.column("number")
            read = read.and_of(numbers, pc.coalesce(raw.column("changed_body"), raw.column("body")))
            first = numbers[0].as_py() if first < 0 else min(first, numbers[0].as_py())
            last = max(last, numbers[-1].as_py())
            writer.write_batch(_with_incarnation(shaped(raw, KEPT, "binary", work.lane), work.incarnation))
    written = _summed(filesystem, scratch)
    if written != read:
        raise StoreRefused(f"{name}: {read.rows} messages were read and {written.rows} are in the file, or others")
    size_bytes = filesystem.get_file_info(scratch).size
    filesystem.move(scratch, final)
    return LakeFile(name, run.lane, buckets.start, buckets.stop, size_bytes, read.rows, first, last)


def _batches(work: Work) -> Iterator[pa.RecordBatch]:
    def lost(floor: int) -> None:
        raise DataLost(f"buckets below {floor} of lane {work.run.lane} were dropped before they were archived")

    names = raw_names(KEPT)
    return read_run(
        work.place, work.incarnation, work.lane.bucket_size, work.run, names, work.lane.now_ms, lost
    )


def _file_schema() -> pa.Schema:
    return arrow_schema_of(KEPT, "binary").append(pa.field("incarnation", pa.string()))


def _with_incarnation(batch: pa.RecordBatch, incarnation: str) -> pa.RecordBatch:
    names = pa.repeat(pa.scalar(incarnation, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, names], schema=_file_schema())


def _summed(filesystem: fs.FileSystem, path: str) -> Sum:
    found = Sum()
    with pq.ParquetFile(filesystem.open_input_file(path)) as file:
        for batch in file.iter_batches(columns=["number", "body"]):
            found = found.and_of(batch.column("number"), batch.column("body"))
    return found
