"""A file on its way into the lake: written aside, read back, and only then given its name."""

from __future__ import annotations

import posixpath
import uuid
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from angelhair.errors import StoreRefused
from angelhair.spark.lakes.files import (
    ARCHIVED,
    ONCE_DIGITS,
    PRIVATE,
    UNFINISHED,
    LakeFile,
    Name,
    digester,
    file_name,
    folder_of,
    settle,
    stem_of,
)
from angelhair.spark.lakes.sums import Sum, summed

COMPRESSION = "zstd"

ROW_GROUP_ROWS, ROW_GROUP_BYTES = 100_000, 64 * 1024 * 1024
"""A row group ends at the first of these: what a writer and a reader hold in memory at a time."""

REPEATED = ("bucket", "attributes", "origin", "deliveries", "state", "moved_to", "incarnation", "lane")
"""Columns whose values come again, which a dictionary makes small. For the others it would be built for nothing."""


GROWING = ("number", "enqueued_at", "due_at", "first_delivered_at", "visible_at", "settled_at")
"""Columns of numbers that are near the one before: written as the differences they take a quarter less of a file's
time. Every reader that knows Parquet's second version has it."""


class Draft:
    """Used with `with`: what is not finished leaves nothing behind, unless the process ends."""

    def __init__(self, table: str, name: Name, schema: pa.Schema) -> None:
        self._name, self.schema = name, schema
        self._filesystem, self._folder = folder_of(table)
        self._scratch = posixpath.join(
            self._folder, UNFINISHED, f"lane={name.lane}", f"{stem_of(name)}-{uuid.uuid4().hex}.parquet"
        )
        self._filesystem.create_dir(posixpath.dirname(self._scratch), recursive=True)
        self._sink = _Digesting(self._filesystem.open_output_stream(self._scratch))
        self._writer = pq.ParquetWriter(
            self._sink, schema, compression=COMPRESSION, write_page_checksum=True,
            use_dictionary=[column for column in schema.names if column in REPEATED],
            write_statistics=[column for column in schema.names if column not in PRIVATE],
            column_encoding={column: "DELTA_BINARY_PACKED" for column in schema.names if column in GROWING},
        )
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._first, self._last = -1, -1
        # What was made from others is swept by its age. Were it made again under its name, a sweep might take it away
        # that saw the older one.
        self._once = "" if name.made == ARCHIVED else uuid.uuid4().hex[:ONCE_DIGITS]
        self._finished = False

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not self._finished:
            self._writer.close()
            self._sink.close()
            self._filesystem.delete_file(self._scratch)

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        span = pc.min_max(batch.column("number")).as_py()
        self._first = span["min"] if self._first < 0 else min(self._first, span["min"])
        self._last = max(self._last, span["max"])
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, schema=self.schema)
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self._waiting, self._rows, self._bytes = [], 0, 0

    def finish(self, wanted: Sum) -> LakeFile:
        """The file under its name, if it holds just that. Doing it again, or twice at once, leads to the same file."""
        self._write()
        self._writer.add_key_value_metadata(wanted.as_metadata())
        self._writer.close()
        self._sink.close()
        settle(self._filesystem, self._scratch)
        path = file_name(self._name, self._sink.digest() + self._once)
        found = summed(self._filesystem, self._scratch)
        if found.found != wanted:
            rows = found.found.rows if found.found else 0
            raise StoreRefused(f"{path}: {wanted.rows} messages were read and {rows} are in the file, or others")
        if not wanted.rows:
            # Nothing but void ids: the lane has come further, without a file.
            self._filesystem.delete_file(self._scratch)
            self._finished = True
            return LakeFile(path, self._name.lane, 0, 0, -1, -1)
        size_bytes = self._filesystem.get_file_info(self._scratch).size
        final = posixpath.join(self._folder, path)
        self._filesystem.create_dir(posixpath.dirname(final), recursive=True)
        self._filesystem.move(self._scratch, final)
        self._finished = True
        settle(self._filesystem, final)
        return LakeFile(path, self._name.lane, size_bytes, wanted.rows, self._first, self._last, wanted.digest)


class _Digesting:
    """A stream that sums up what passes through it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._digest = digester()
        self._position = 0

    @property
    def closed(self) -> bool:
        return bool(self._stream.closed)

    def write(self, data: Any) -> int:
        self._digest.update(data)
        self._stream.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()

    def digest(self) -> str:
        return self._digest.hexdigest()
