"""A queue's lake: a Delta table of finished buckets, and how far each lane has come.

Tasks write Parquet files under names that follow from what is in them; a file counts once a commit of the table names
it. The same commit says, as an application transaction for each lane, up to which bucket the lane is in the lake. Two
archivers that prepared the same buckets both try to raise the same number from the same version of the table, and the
table takes one of the two: this is what makes it exactly once.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, Transaction
from pyarrow import fs

from angelhair.errors import StoreRefused
from angelhair.spark.columns import COLUMNS, arrow_schema_of

KEPT = tuple(name for name in COLUMNS if name != "lane")
"""The columns of a file. The lane is in its folder's name, as it is what the table is partitioned by."""

SCHEMA = arrow_schema_of(KEPT, "binary").append(pa.field("incarnation", pa.string())).append(
    pa.field("lane", COLUMNS["lane"].arrow)
)
BUCKET_DIGITS = 15
DAY_SECONDS = 86_400

UNFINISHED = "_unfinished"
"""The folder of files that are being written. Readers of tables pass over names that begin so."""

_NAME = re.compile(r"lane=(?P<lane>\d+)/(?P<incarnation>[^/-]+)-\d+-(?P<end>\d+)\.parquet$")


class LakeMoved(StoreRefused):
    """Another archiver of the same queue was faster; what it did need not be done again."""


class LakeFile(NamedTuple):
    """A file that a task has written and read back."""

    path: str
    """Below the table's folder."""
    lane: int
    first_bucket: int
    end_bucket: int
    size_bytes: int
    rows: int
    first: int
    last: int
    """Its ids. Without rows, both mean nothing."""


def file_name(incarnation: str, lane: int, first_bucket: int, end_bucket: int) -> str:
    span = f"{first_bucket:0{BUCKET_DIGITS}d}-{end_bucket:0{BUCKET_DIGITS}d}"
    return f"lane={lane}/{incarnation}-{span}.parquet"


def folder_of(place: str) -> tuple[fs.FileSystem, str]:
    """Where that is: an object store by its address, or a folder of this machine."""
    return fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)


def table_place(root: str, queue: str) -> str:
    return f"{root.rstrip('/')}/{queue}"


class Lake:
    """The table at one of its versions: what is committed through it is refused when the table has moved on in a way
    that matters. So a job opens it, plans, writes, and commits through the very same object."""

    def __init__(self, place: str) -> None:
        self.place = place
        try:
            self._table = DeltaTable(place)
        except TableNotFoundError:
            self._table = DeltaTable.create(place, SCHEMA, mode="ignore", partition_by=["lane"])

    @property
    def version(self) -> int:
        return self._table.version()

    def archived(self, incarnation: str, lane: int) -> int | None:
        """Buckets of the lane below this one are in the lake; None if none ever was."""
        return self._table.transaction_version(_application(incarnation, lane))

    def commit(self, incarnation: str, files: Iterable[LakeFile], ends: Mapping[int, int]) -> None:
        """Makes the files count, and says how far each lane has come. Raises `LakeMoved`."""
        now_ms = time.time_ns() // 1_000_000
        try:
            self._table.create_write_transaction(
                [_added(file, now_ms) for file in files if file.rows],
                mode="append",
                schema=SCHEMA,
                partition_by=["lane"],
                commit_properties=CommitProperties(
                    app_transactions=[
                        Transaction(_application(incarnation, lane), end) for lane, end in sorted(ends.items())
                    ],
                ),
            )
        except CommitFailedError as error:
            raise LakeMoved(f"the lake at {self.place} was changed meanwhile: {error}") from error

    def files(self) -> list[str]:
        return sorted(self._table.file_uris())

    def sweep(self, incarnation: str, lanes: Iterable[int]) -> int:
        """Takes away what jobs left behind that ended half way; returns how many files went.

        Only what can never count any more: files of buckets that are in the lake under other names, as a commit of
        theirs would be refused, and what was being written a day ago. Another job may be at work right now.
        """
        filesystem, folder = folder_of(self.place)
        ends = {lane: self.archived(incarnation, lane) or 0 for lane in lanes}
        named = {uri.rpartition("/")[2] for uri in self._table.file_uris()}
        swept = 0
        for found in filesystem.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True)):
            if found.type != fs.FileType.File:
                continue
            ours = _NAME.search(found.path)
            left = (
                ours is not None
                and ours["incarnation"] == incarnation
                and int(ours["end"]) <= ends.get(int(ours["lane"]), 0)
                and found.base_name not in named
            )
            if left or (f"/{UNFINISHED}/" in found.path and time.time() - found.mtime.timestamp() > DAY_SECONDS):
                filesystem.delete_file(found.path)
                swept += 1
        return swept


def _application(incarnation: str, lane: int) -> str:
    return f"angelhair/{incarnation}/{lane}"


def _added(file: LakeFile, now_ms: int) -> AddAction:
    first_bucket, last_bucket = file.first_bucket, file.end_bucket - 1
    told = {
        "numRecords": file.rows,
        "minValues": {"number": file.first, "bucket": first_bucket},
        "maxValues": {"number": file.last, "bucket": last_bucket},
        "nullCount": {"number": 0, "bucket": 0},
    }
    return AddAction(file.path, file.size_bytes, {"lane": str(file.lane)}, now_ms, True, json.dumps(told))


def told_apart(files: Sequence[LakeFile]) -> None:
    """Ids of one lane are in one file only."""
    for lane in {file.lane for file in files}:
        end = -1
        for file in sorted((file for file in files if file.lane == lane), key=lambda file: file.first_bucket):
            if file.first_bucket < end:
                raise StoreRefused(f"{file.path} overlaps the file before it")
            end = file.end_bucket
