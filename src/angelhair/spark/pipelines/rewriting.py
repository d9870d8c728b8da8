"""What a task does to files of the lake: reads some, holds them against what they say of themselves, and writes one in
their place."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from angelhair.errors import StoreRefused
from angelhair.spark.lakes.drafts import Draft
from angelhair.spark.lakes.files import LakeFile, Name, folder_of
from angelhair.spark.lakes.sums import Sum, checksums_of

Change = Callable[[pa.RecordBatch], pa.RecordBatch]


def rewritten(table: str, paths: Sequence[str], name: Name, change: Change) -> LakeFile:
    """All messages of these files in one, in the order of the files, each batch as `change` makes it."""
    with Draft(table, name, _joined_schema(table, paths)) as draft:
        written = Sum()
        for path in paths:
            for batch in _checked(table, path):
                batch = change(_conformed(batch, draft.schema))
                written = written.and_of(batch.column("number"), checksums_of(batch.column("body")))
                draft.add(batch)
        return draft.finish(written)


def _joined_schema(table: str, paths: Sequence[str]) -> pa.Schema:
    """Every column that one of them has. What a newer version wrote is kept."""
    filesystem, folder = folder_of(table)
    schemas = [pq.read_schema(posixpath.join(folder, path), filesystem=filesystem) for path in paths]
    return pa.unify_schemas([schema.remove_metadata() for schema in schemas])


def _checked(table: str, path: str) -> Iterator[pa.RecordBatch]:
    """The file's messages; raises at their end if they are not what was written. A damaged file is not passed on as if
    it were good."""
    filesystem, folder = folder_of(table)
    found = Sum()
    with (
        filesystem.open_input_file(posixpath.join(folder, path)) as stream,
        pq.ParquetFile(stream, page_checksum_verification=True) as file,
    ):
        for batch in file.iter_batches():
            found = found.and_of(batch.column("number"), checksums_of(batch.column("body")))
            yield batch
        kept = Sum.kept_in(file.metadata.metadata)
    if kept is not None and kept != found:
        raise StoreRefused(f"{path} is damaged: it does not hold what was written to it")


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
