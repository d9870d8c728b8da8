"""A lake as a Delta table. How far a lane has come is an application transaction of the commit that adds the files."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from angelhair.spark.lakes.files import MOST_NUMBER, SCHEMA, LakeFile, settle
from angelhair.spark.lakes.port import MOST_TRIES, Lake, LakeMoved, NoLake

FOLDER = "_delta_log"
HOUR_SECONDS = 3_600


class DeltaLake(Lake):
    format = "delta"

    def __init__(self, place: str) -> None:
        super().__init__(place)
        try:
            self._table = DeltaTable(place)
        except TableNotFoundError:
            raise NoLake(f"there is no lake at {place}") from None

    @classmethod
    def made(cls, place: str, schema: pa.Schema = SCHEMA) -> Self:
        """Before anything is planned: a change of the columns would hide what others have committed since."""
        DeltaTable.create(place, schema, mode="ignore", partition_by=["lane"])
        lake = cls(place)
        known = {field.name for field in lake._table.schema().fields}
        new = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
        if new:
            try:
                lake._table.alter.add_columns(new)
            except CommitFailedError as error:
                raise LakeMoved(f"the lake at {place} was changed meanwhile: {error}") from error
            lake = cls(place)
        return lake

    @property
    def version(self) -> int:
        return self._table.version()

    def archived(self, incarnation: str, lane: int) -> int | None:
        return self._table.transaction_version(_application(incarnation, lane))

    def held(self) -> list[LakeFile]:
        actions = pa.table(self._table.get_add_actions(flatten=True))
        # What nobody has given a statistic of has no column.
        columns = [
            actions.column(name).to_pylist() if name in actions.schema.names else [None] * actions.num_rows
            for name in ("path", "partition.lane", "size_bytes", "num_records", "min.number", "max.number")
        ]
        return [
            LakeFile(path, lane, size_bytes, rows or 0, *_span(first, last))
            for path, lane, size_bytes, rows, first, last in zip(*columns, strict=True)
        ]

    def replaced(self) -> frozenset[str]:
        return frozenset(self._outlived(0))

    def commit(self, incarnation: str, files: Iterable[LakeFile], ends: Mapping[int, int]) -> None:
        transactions = [Transaction(_application(incarnation, lane), end) for lane, end in sorted(ends.items())]
        try:
            self._write(
                [_added(file, changes=True) for file in files if file.rows],
                CommitProperties(app_transactions=transactions),
            )
        except CommitFailedError as error:
            raise LakeMoved(f"the lake at {self.place} was changed meanwhile: {error}") from error

    def replace(self, gone: Sequence[LakeFile], files: Sequence[LakeFile], changes: bool = False) -> None:
        """Without the library's own second tries: it would take the removal of a file that was removed meanwhile."""
        now_ms = _now_ms()
        actions: list[AddAction | RemoveAction] = [
            *(RemoveAction(file.path, changes, now_ms, file.size_bytes, {"lane": str(file.lane)}) for file in gone),
            *(_added(file, changes) for file in files),
        ]
        wanted = {file.path for file in gone}
        for _ in range(MOST_TRIES):
            if not wanted <= {file.path for file in self.held()}:
                raise LakeMoved(f"files of the lake at {self.place} were replaced meanwhile")
            try:
                return self._write(actions, CommitProperties(max_commit_retries=0))
            except CommitFailedError:
                self._table = DeltaTable(self.place)
        raise LakeMoved(f"the lake at {self.place} changes all the time")

    def vacuum(self, after_seconds: float) -> int:
        """Delta counts that in hours; parts of one count as a whole."""
        return self.delete(self._outlived(math.ceil(after_seconds / HOUR_SECONDS)))

    def _outlived(self, hours: int) -> list[str]:
        return self._table.vacuum(hours, dry_run=True, enforce_retention_duration=False)

    def _write(self, actions: list[AddAction | RemoveAction], properties: CommitProperties) -> None:
        self._table.create_write_transaction(
            actions, mode="append", schema=SCHEMA, partition_by=["lane"], commit_properties=properties
        )
        before = self.version
        # It does not know of its own commit, which may have come after others.
        self._table = DeltaTable(self.place)
        for version in range(before + 1, self.version + 1):
            settle(self.filesystem, f"{self.folder}/{FOLDER}/{version:020d}.json")


def _application(incarnation: str, lane: int) -> str:
    return f"angelhair/{incarnation}/{lane}"


def _span(first: int | None, last: int | None) -> tuple[int, int]:
    """Of a file that somebody else made without statistics, any id may be in it."""
    return (0 if first is None else first), (MOST_NUMBER if last is None else last)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _added(file: LakeFile, changes: bool) -> AddAction:
    told: dict[str, object] = {
        "numRecords": file.rows,
        "minValues": {"number": file.first},
        "maxValues": {"number": file.last},
        "nullCount": {"number": 0},
    }
    if file.name is not None:
        told["minValues"] = {"number": file.first, "bucket": file.name.first_bucket}
        told["maxValues"] = {"number": file.last, "bucket": file.name.end_bucket - 1}
        told["nullCount"] = {"number": 0, "bucket": 0}
    return AddAction(file.path, file.size_bytes, {"lane": str(file.lane)}, _now_ms(), changes, json.dumps(told))
