"""What earlier jobs have looked at, and what came of it: a folder of Parquet tables that only grows.

    LAKE/_insight/QUEUE/INCARNATION/batches/00000007.json     which buckets, by which folder
    LAKE/_insight/QUEUE/INCARNATION/minutes/00000007-TOKEN/   what came of them; poison and tops beside it

A folder counts once a batch names it, and a batch can be made once: of two jobs at the same time one is refused. The
buckets of a batch begin where those of the one before it end, so that each is counted once however often a job is run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from angelhair.errors import StoreRefused
from angelhair.spark.lakes import folder_of

FOLDER = "_insight"
TABLES = ("minutes", "poison", "tops")


class InsightMoved(StoreRefused):
    """Another job looked at the same buckets, and was faster."""


@dataclass(frozen=True)
class Batch:
    number: int
    folder: str
    lanes: dict[int, tuple[int, int]]
    """By lane: the first bucket, and the one after the last."""
    messages: int = 0
    tables: tuple[str, ...] = field(default=TABLES)

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Batch:
        told = json.loads(text)
        lanes = {int(lane): (first, end) for lane, (first, end) in told["lanes"].items()}
        return cls(told["number"], told["folder"], lanes, told["messages"], tuple(told["tables"]))


class Batches:
    """As they are when this is made."""

    def __init__(self, lake: str, queue: str, incarnation: str) -> None:
        self.place = f"{lake.rstrip('/')}/{FOLDER}/{queue}/{incarnation}"
        self._filesystem, self._folder = folder_of(self.place)
        self.made = sorted(self._read_all(), key=lambda batch: batch.number)

    def ends(self) -> dict[int, int]:
        """By lane: buckets below have been looked at."""
        ends: dict[int, int] = {}
        for batch in self.made:
            ends.update({lane: end for lane, (_, end) in batch.lanes.items()})
        return ends

    def next(self, lanes: dict[int, tuple[int, int]]) -> Batch:
        number = self.made[-1].number + 1 if self.made else 0
        return Batch(number, f"{number:08d}-{uuid.uuid4().hex[:8]}", lanes)

    def place_of(self, table: str, batch: Batch) -> str:
        return f"{self.place}/{table}/{batch.folder}"

    def read(self, spark: SparkSession, table: str) -> DataFrame | None:
        places = [self.place_of(table, batch) for batch in self.made if table in batch.tables]
        return spark.read.parquet(*places) if places else None

    def commit(self, batch: Batch) -> None:
        """From now on the batch counts."""
        path = f"{self._folder}/batches/{batch.number:08d}.json"
        self._filesystem.create_dir(f"{self._folder}/batches", recursive=True)
        try:
            if isinstance(self._filesystem, fs.LocalFileSystem):
                _link_whole(Path(path), batch.to_text())
            else:
                self._write_where_nothing_is(path, batch)
        except FileExistsError:
            raise InsightMoved(f"another job has made batch {batch.number} of {self.place} meanwhile") from None
        self.made.append(batch)

    def sweep(self) -> int:
        """Takes away what jobs left that ended half way: folders of batches that are made, under other names."""
        named = {batch.folder for batch in self.made}
        numbers = {batch.number for batch in self.made}
        swept = 0
        for table in TABLES:
            selector = fs.FileSelector(f"{self._folder}/{table}", allow_not_found=True)
            for found in self._filesystem.get_file_info(selector):
                name = found.base_name
                if name not in named and int(name.partition("-")[0]) in numbers:
                    self._filesystem.delete_dir(found.path)
                    swept += 1
        return swept

    def _write_where_nothing_is(self, path: str, batch: Batch) -> None:
        # Object stores are asked first and written then: two jobs in the same moment are not told apart there.
        if self._filesystem.get_file_info(path).type != fs.FileType.NotFound:
            raise FileExistsError(path)
        with self._filesystem.open_output_stream(path) as stream:
            stream.write(batch.to_text().encode())

    def _read_all(self) -> Sequence[Batch]:
        selector = fs.FileSelector(f"{self._folder}/batches", allow_not_found=True)
        found = []
        for info in self._filesystem.get_file_info(selector):
            if info.extension == "json":
                with self._filesystem.open_input_stream(info.path) as stream:
                    found.append(Batch.from_text(stream.read().decode()))
        return found


def _link_whole(path: Path, text: str) -> None:
    """A file that is there whole or not at all, and never in another's place."""
    scratch = path.with_suffix(f".{uuid.uuid4().hex}")
    scratch.write_text(text, encoding="utf-8")
    try:
        path.hardlink_to(scratch)
    finally:
        scratch.unlink()
