"""A lake as an Iceberg table. How far the lanes have come is a property of the snapshot that adds the files.

The catalog is the one that the environment names `angelhair`, as pyiceberg reads it; else an SQLite file beside the
tables. Each of our snapshots says of every lane how far it is. A snapshot of somebody else's, such as one that joined
files, says nothing of it, and then its parents are asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError, ValidationException
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import LongType
from pyiceberg.utils.config import Config

from angelhair.errors import StoreRefused
from angelhair.spark.lakes.files import MOST_NUMBER, PRIVATE, SCHEMA, LakeFile
from angelhair.spark.lakes.port import MOST_TRIES, Lake, LakeMoved, NoLake

FOLDER = "metadata"
CATALOG = "angelhair"
"""The catalog's name, and the name space of the tables in it."""
CATALOG_FILE = "iceberg-catalog.db"
ARCHIVED = "angelhair.archived"

OURS = {
    # A second try of the library's would add files whose buckets came into the table meanwhile.
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
}
PROPERTIES = OURS | {f"write.metadata.metrics.column.{name}": "none" for name in PRIVATE}


class IcebergLake(Lake):
    format = "iceberg"
    lane_inside = True

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._catalog = _catalog_of(place)
        self._name = _name_of(place)
        try:
            self.table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            raise NoLake(f"there is no lake at {place}, or not in this catalog") from None

    @classmethod
    def made(cls, place: str, schema: pa.Schema = SCHEMA) -> Self:
        try:
            lake = cls(place)
        except NoLake:
            _create(place, schema)
            lake = cls(place)
        lake._widen(schema)
        return lake

    def _widen(self, schema: pa.Schema) -> None:
        known = set(self.table.schema().column_names)
        wanted = {name: value for name, value in OURS.items() if self.table.properties.get(name) != value}
        if known >= set(schema.names) and not wanted:
            return
        changing = self.table.transaction()
        with changing.update_schema() as update:
            update.union_by_name(schema)
        if wanted:
            changing.set_properties(wanted)
        try:
            changing.commit_transaction()
        except CommitFailedException as error:
            raise LakeMoved(f"the lake at {self.place} was changed meanwhile: {error}") from error
        self.table = self._catalog.load_table(self._name)

    @property
    def version(self) -> int:
        return self.table.last_sequence_number

    def archived(self, incarnation: str, lane: int) -> int | None:
        return self._lanes().get(_lane(incarnation, lane))

    def _lanes(self) -> dict[str, int]:
        snapshot = self.table.current_snapshot()
        if snapshot is None:
            return {}
        while snapshot is not None:
            said = snapshot.summary.additional_properties.get(ARCHIVED) if snapshot.summary else None
            if said is not None:
                lanes: dict[str, int] = json.loads(said)
                return lanes
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.table.snapshot_by_id(parent)
        raise StoreRefused(
            f"the lake at {self.place} does not know how far it is: snapshots were expired, and none that is left is "
            "of an archive job"
        )

    def held(self) -> list[LakeFile]:
        return [self._file(file) for file in self._data_files().values()]

    def files(self) -> list[str]:
        return sorted(self._data_files())

    def _data_files(self) -> dict[str, DataFile]:
        return {task.file.file_path: task.file for task in self.table.scan().plan_files()}

    def _file(self, file: DataFile) -> LakeFile:
        number = self.table.schema().find_field("number").field_id
        lane = file.partition[0]
        first, last = (
            int(from_bytes(LongType(), bounds[number])) if bounds and number in bounds else unknown
            for bounds, unknown in ((file.lower_bounds, 0), (file.upper_bounds, MOST_NUMBER))
        )
        return LakeFile(self._relative(file.file_path), lane, file.file_size_in_bytes, file.record_count, first, last)

    def _relative(self, address: str) -> str:
        return address.removeprefix(self.table.location().rstrip("/") + "/")

    def _address(self, path: str) -> str:
        return f"{self.table.location().rstrip('/')}/{path}"

    def replaced(self) -> frozenset[str]:
        now = self.table.current_snapshot()
        older = [snapshot for snapshot in self.table.snapshots() if snapshot != now]
        return frozenset(self._paths_of(older)[0] - {file.path for file in self.held()})

    def commit(self, incarnation: str, files: Iterable[LakeFile], ends: Mapping[int, int]) -> None:
        wanted = {_lane(incarnation, lane): end for lane, end in ends.items()}
        planned = {lane: self._lanes().get(lane) for lane in wanted}
        addresses = [self._address(file.path) for file in files if file.rows]

        def change(transaction: Transaction) -> None:
            lanes = self._lanes()
            if planned != {lane: lanes.get(lane) for lane in wanted}:
                raise LakeMoved(f"the lake at {self.place} was changed meanwhile: its lanes have come further")
            transaction.add_files(addresses, snapshot_properties=_said(lanes | wanted))

        self._next(change)

    def replace(self, gone: Sequence[LakeFile], files: Sequence[LakeFile], changes: bool = False) -> None:
        removed = [self._address(file.path) for file in gone]
        addresses = [self._address(file.path) for file in files]

        def change(transaction: Transaction) -> None:
            there = self._data_files()
            if not there.keys() >= set(removed):
                raise LakeMoved(f"files of the lake at {self.place} were replaced meanwhile")
            new = list(parquet_files_to_data_files(self.table.io, transaction.table_metadata, iter(addresses)))
            with transaction.update_snapshot(snapshot_properties=_said(self._lanes())).overwrite() as replacing:
                for address in removed:
                    replacing.delete_data_file(there[address])
                for file in new:
                    replacing.append_data_file(file)

        self._next(change)

    def _next(self, change: Callable[[Transaction], None]) -> None:
        """Only the next snapshot, from the newest; whoever finds that taken looks again whether it may."""
        for _ in range(MOST_TRIES):
            transaction = self.table.transaction()
            try:
                change(transaction)
                transaction.commit_transaction()
                return
            except (CommitFailedException, ValidationException):
                self.table = self._catalog.load_table(self._name)
        raise LakeMoved(f"the lake at {self.place} changes all the time")

    def vacuum(self, after_seconds: float) -> int:
        """Snapshots that have not been the newest for so long go, and with them what only they needed."""
        before_ms = time.time_ns() // 1_000_000 - int(after_seconds * 1_000)
        inorder = sorted(self.table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
        outlived = [
            snapshot for snapshot, after in pairwise(inorder) if after.timestamp_ms <= before_ms
        ]
        if not outlived:
            return 0
        files, metadata = self._paths_of(outlived)
        needed_files, needed_metadata = self._paths_of(
            [snapshot for snapshot in inorder if snapshot not in outlived]
        )
        try:
            self.table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in outlived]).commit()
        except CommitFailedException as error:
            raise LakeMoved(f"the lake at {self.place} was changed meanwhile: {error}") from error
        self.table = self._catalog.load_table(self._name)
        self.delete(metadata - needed_metadata)
        return self.delete(files - needed_files)

    def _paths_of(self, snapshots: Iterable[Snapshot]) -> tuple[set[str], set[str]]:
        """Data files, and lists and manifests, that these need."""
        manifests, metadata = {}, set()
        for snapshot in snapshots:
            metadata.add(self._relative(snapshot.manifest_list))
            manifests.update({each.manifest_path: each for each in snapshot.manifests(self.table.io)})
        files = {
            self._relative(entry.data_file.file_path)
            for manifest in manifests.values()
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=True)
        }
        return files, metadata | {self._relative(path) for path in manifests}


def _create(place: str, schema: pa.Schema) -> None:
    location = place if "://" in place else f"file://{place}"
    catalog = _catalog_of(place)
    catalog.create_namespace_if_not_exists(CATALOG)
    try:
        with catalog.create_table_transaction(
            _name_of(place), schema, location=location, properties=PROPERTIES
        ) as making, making.update_spec() as spec:
            spec.add_identity("lane")
    except (TableAlreadyExistsError, CommitFailedException):
        # Somebody else has made it meanwhile.
        return


def _name_of(place: str) -> tuple[str, str]:
    return CATALOG, place.rstrip("/").rpartition("/")[2]


def _lane(incarnation: str, lane: int) -> str:
    return f"{incarnation}/{lane}"


def _said(lanes: Mapping[str, int]) -> dict[str, str]:
    return {ARCHIVED: json.dumps(lanes, sort_keys=True)}


@lru_cache
def _catalog_of(place: str) -> Catalog:
    if Config().get_catalog_config(CATALOG) is not None:
        return load_catalog(CATALOG)
    root = place.rstrip("/").rpartition("/")[0]
    if "://" in root and not root.startswith("file://"):
        raise StoreRefused(
            f"an Iceberg lake at {place} needs a catalog: name one {CATALOG!r}, as by "
            f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI, or take --format delta"
        )
    folder = Path(root.removeprefix("file://"))
    folder.mkdir(parents=True, exist_ok=True)
    return SqlCatalog(CATALOG, uri=f"sqlite:///{folder / CATALOG_FILE}")
