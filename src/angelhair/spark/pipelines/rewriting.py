"""What a task does to files of the lake: reads some, holds them against what they say of themselves, and writes one in
their place."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from angelhair.errors import StoreRefused
from angelhair.spark.lakes.drafts import Draft
from angelhair.spark.lakes.files import LakeFile, Name, folder_of
from angelhair.spark.lakes.sums import Sum, verify_file

Change = Callable[[pa.RecordBatch], pa.RecordBatch]


def rewritten(table: str, paths: Sequence[str], name: Name, change: Change) -> LakeFile:
    """All messages of these files in one, in the order of the files, each batch as `change` makes it. Raises
    `StoreRefused` for a file that is not what was written: it is not passed on as if it were good."""
    filesystem, folder = folder_of(table)
    sources = [posixpath.join(folder, path) for path in paths]
    for path, source in zip(paths, sources, strict=True):
        verified = verify_file(filesystem, source)
        if not verified:
            raise StoreRefused(f"{path} is damaged: {verified.reason}")
    written = Sum()
    with Draft(table, name, _joined_schema(filesystem, sources)) as draft:
        for source in sources:
            with filesystem.open_input_file(source) as stream, pq.ParquetFile(stream) as file:
                for batch in file.iter_batches():
                    batch = change(_conformed(batch, draft.schema))
                    written = written.and_of(batch.column("number"), batch.column("body"))
                    draft.add(batch)
        return draft.finish(written)


def _joined_schema(filesystem: fs.FileSystem, sources: Sequence[str]) -> pa.Schema:
    """Every column that one of them has. What a newer version wrote is kept."""
    schemas = [pq.read_schema(source, filesystem=filesystem) for source in sources]
    return pa.unify_schemas([schema.remove_metadata() for schema in schemas])


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
