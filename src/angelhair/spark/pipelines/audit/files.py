"""The lake's files by themselves: are they all there, can they be read, and have they as many rows as the table says?

Only what is wrong comes back to the driver. What a file has lost is told by the ids that the table wrote down for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from angelhair.spark.history import FileTold
from angelhair.spark.lakes import folder_of
from angelhair.spark.pipelines.audit.accounting import Short

FILES_A_TASK = 50
PROBLEMS_DDL = "uri string, problem string, rows bigint"
PROBLEMS = pa.schema([("uri", pa.string()), ("problem", pa.string()), ("rows", pa.int64())])


class Damage(NamedTuple):
    """A file that is not what the table says."""

    told: FileTold
    problem: str
    rows: int | None
    """That can be read; None if it cannot be."""

    def as_json(self) -> dict[str, Any]:
        told = self.told
        between = None if told.first is None else f"{told.lane}-{told.first}..{told.lane}-{told.last}"
        return {"file": told.uri, "problem": self.problem, "rows": self.rows, "told": told.rows, "ids": between}


def damaged_files(spark: SparkSession, files: Sequence[FileTold], whole: bool = False) -> list[Damage]:
    """`whole`: every page is read, not only what the file says of itself."""
    if not files:
        return []
    told = {file.uri: file for file in files}
    if len(files) <= FILES_A_TASK and not whole:
        # A few footers are read here, before a task would have begun.
        here = [_problem(file.uri, file.rows, whole) for file in files]
        return [Damage(told[row["uri"]], row["problem"], row["rows"]) for row in here if row is not None]
    frame = spark.createDataFrame([(file.uri, file.rows) for file in files], "uri string, rows bigint")
    tasks = -(-len(files) // FILES_A_TASK)

    def examine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [_problem(row["uri"], row["rows"], whole) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist([row for row in found if row is not None], PROBLEMS)

    found = frame.repartition(max(2, tasks)).mapInArrow(examine, PROBLEMS_DDL).collect()
    return [Damage(told[row.uri], row.problem, row.rows) for row in sorted(found, key=lambda row: row.uri)]


def _problem(uri: str, told: int | None, whole: bool) -> dict[str, Any] | None:
    filesystem, path = folder_of(uri)
    try:
        with pq.ParquetFile(filesystem.open_input_file(path)) as file:
            rows = file.metadata.num_rows
            if whole:
                for _ in file.iter_batches():
                    pass
    except FileNotFoundError:
        return {"uri": uri, "problem": "is not there", "rows": None}
    except (OSError, pa.ArrowException) as error:
        return {"uri": uri, "problem": f"cannot be read: {str(error).splitlines()[0]}", "rows": None}
    if told is None or rows == told:
        return None
    return {"uri": uri, "problem": f"has {rows:,} rows, and the table says {told:,}", "rows": rows}


def may_be_of(told: FileTold, incarnation: str) -> bool:
    """Whether a file can hold rows of this incarnation."""
    return told.incarnation is None or told.incarnation == incarnation


def short_of(damages: Sequence[Damage], lane: int, incarnation: str) -> tuple[Short, ...]:
    """Where ids of this lane are missing because of these files."""
    found = []
    for told, _, rows in damages:
        if told.lane != lane or not may_be_of(told, incarnation) or None in (told.rows, told.first, told.last):
            continue
        assert told.rows is not None and told.first is not None and told.last is not None
        if rows is None or rows < told.rows:
            found.append(Short(told.first, told.last, told.last - told.first + 1 == told.rows))
    return tuple(found)
