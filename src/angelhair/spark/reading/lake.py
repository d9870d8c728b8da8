"""From the files of a queue's lake: only the columns that are asked for, of row groups that may hold what is asked for.

Parquet keeps the least and the greatest value of every column in each row group, so that a file is opened and most of
it passed over. Times are exact there: unlike the first message of a bucket, these two are true of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from angelhair.spark.columns import TIME
from angelhair.spark.lakes.files import folder_of
from angelhair.spark.planning import Run
from angelhair.spark.points import Times
from angelhair.spark.refusals import DataLost

BATCH_ROWS = 16_384


def read(
    uris: Sequence[str], incarnation: str, run: Run, names: Sequence[str], exact: Times, window: Times
) -> Iterator[pa.RecordBatch]:
    """`exact`: rows outside of these times are left out. `window`: row groups outside of these need not be read."""
    for uri in uris:
        filesystem, path = folder_of(uri)
        try:
            opened = filesystem.open_input_file(path)
        except FileNotFoundError:
            raise DataLost(f"{uri} has gone from the lake since the read was planned; read again") from None
        with pq.ParquetFile(opened, page_checksum_verification=True) as file:
            yield from _read_file(file, incarnation, run, names, exact, window)


def begun_ms(uri: str) -> int | None:
    """When the oldest message of a file was put, by its footer."""
    filesystem, path = folder_of(uri)
    with filesystem.open_input_file(path) as opened:
        metadata = pq.read_metadata(opened)
    found = [_bounds(metadata, group).get("enqueued_at") for group in range(metadata.num_row_groups)]
    return min((_milliseconds(bounds[0]) for bounds in found if bounds is not None), default=None)


def _read_file(
    file: pq.ParquetFile, incarnation: str, run: Run, names: Sequence[str], exact: Times, window: Times
) -> Iterator[pa.RecordBatch]:
    bounds = {group: _bounds(file.metadata, group) for group in range(file.metadata.num_row_groups)}
    groups = [group for group, told in bounds.items() if _may_hold(told, incarnation, run, exact.and_within(window))]
    if not groups:
        return
    wanted = {"number", *names}
    if any(bounds[group].get("incarnation") != (incarnation, incarnation) for group in groups):
        wanted.add("incarnation")
    if exact != Times():
        wanted.add("enqueued_at")
    columns = [name for name in file.schema_arrow.names if name in wanted]
    for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns):
        chosen = _chosen(batch, incarnation, run, exact)
        if chosen.num_rows:
            yield chosen


def _bounds(metadata: pq.FileMetaData, group: int) -> dict[str, tuple[Any, Any]]:
    """By column: the least and the greatest value, where the file says so."""
    row_group = metadata.row_group(group)
    columns = [row_group.column(index) for index in range(row_group.num_columns)]
    return {
        column.path_in_schema: (column.statistics.min, column.statistics.max)
        for column in columns
        if column.statistics is not None and column.statistics.has_min_max
    }


def _may_hold(bounds: dict[str, tuple[Any, Any]], incarnation: str, run: Run, window: Times) -> bool:
    first, last = bounds.get("number", (run.first, run.end - 1))
    if last < run.first or first >= run.end:
        return False
    least, greatest = bounds.get("incarnation", (incarnation, incarnation))
    if not least <= incarnation <= greatest:
        return False
    if "enqueued_at" not in bounds:
        return True
    oldest, youngest = (_milliseconds(time) for time in bounds["enqueued_at"])
    return (window.first_ms is None or youngest >= window.first_ms) and (
        window.end_ms is None or oldest < window.end_ms
    )


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _chosen(batch: pa.RecordBatch, incarnation: str, run: Run, exact: Times) -> pa.RecordBatch:
    """Tests that all rows pass cost no copy."""
    tests = [pc.greater_equal(batch.column("number"), run.first), pc.less(batch.column("number"), run.end)]
    if "incarnation" in batch.schema.names:
        tests.append(pc.equal(batch.column("incarnation"), incarnation))
    if exact.first_ms is not None:
        tests.append(pc.greater_equal(batch.column("enqueued_at"), pa.scalar(exact.first_ms * 1000, TIME)))
    if exact.end_ms is not None:
        tests.append(pc.less(batch.column("enqueued_at"), pa.scalar(exact.end_ms * 1000, TIME)))
    for test in tests[1:]:
        tests[0] = pc.and_(tests[0], test)
    return batch if pc.all(tests[0]).as_py() else batch.filter(tests[0])
