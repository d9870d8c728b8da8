"""`spark.read.format("angelhair")`: a queue as a table. Reading takes no message away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from angelhair.clock import SystemClock
from angelhair.engine.store import Store
from angelhair.errors import InvalidRequest
from angelhair.spark.columns import checked_names, raw_names, schema_of
from angelhair.spark.looking import Looking
from angelhair.spark.options import ReadOptions
from angelhair.spark.planning import LaneShape, QueueShape, Run, cut, look
from angelhair.spark.pruning import narrowed
from angelhair.spark.reading.runs import read_run
from angelhair.spark.refusals import DataLost
from angelhair.spark.shaping import Lane, between_times, shaped
from angelhair.spark.writing.options import WriteOptions


class AngelhairDataSource(DataSource):
    takes_filters = False

    @classmethod
    def name(cls) -> str:
        return "angelhair"

    def schema(self) -> StructType:
        options = ReadOptions.of(self.options, streaming=None)
        return schema_of(options.columns, options.payload)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = _narrowed(ReadOptions.of(self.options, pushdown=self.takes_filters), schema)
        return FilteredReader(options) if options.pushdown else QueueReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name for it
        from angelhair.spark.stream import QueueStreamReader

        return QueueStreamReader(_narrowed(ReadOptions.of(self.options, streaming=True), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from angelhair.spark.writing.sink import QueueWriter

        if overwrite:
            raise InvalidRequest("mode", "a queue cannot be overwritten; append, or purge it first")
        return QueueWriter(WriteOptions.of(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - as above
        from angelhair.spark.writing.sink import QueueStreamWriter

        if overwrite:
            raise InvalidRequest("outputMode", "a queue takes what is appended; complete would put everything again")
        return QueueStreamWriter(WriteOptions.of(self.options, streaming=True), schema)


class FilteringDataSource(AngelhairDataSource):
    """What `register` makes known: it has told the session to allow filters. A plan is made in a process that does not
    know the session's settings, so which source it is has to say so."""

    takes_filters = True


def _narrowed(options: ReadOptions, schema: StructType) -> ReadOptions:
    """Spark does not say which columns a query uses; a schema that the user gives does."""
    names = checked_names(schema.names, "schema")
    for field in schema_of(names, options.payload):
        if schema[field.name].dataType != field.dataType:
            raise InvalidRequest(
                "schema", f"{field.name} is {field.dataType.simpleString()}, not "
                f"{schema[field.name].dataType.simpleString()}"
            )
    return replace(options, columns=names)


class QueuePartition(InputPartition):
    """One run of buckets, with what its rows need to be understood. None of it is secret."""

    def __init__(self, run: Run, lane: Lane, incarnation: str) -> None:
        super().__init__(run)
        self.run = run
        self.lane = lane
        self.incarnation = incarnation


class QueueReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options

        async def between(store: Store) -> tuple[QueueShape, list[Run]]:
            shape = await look(store, options.account, options.queue)
            starts = await options.start.ids_in(store, shape, options.isolation, last=False)
            ends = await options.end.ids_in(store, shape, options.isolation, last=True)
            return shape, [
                Run(
                    lane.number,
                    max(shape.start_of(lane), starts[lane.number]),
                    min(shape.end_of(lane, options.isolation), ends[lane.number]),
                )
                for lane in shape.lanes
            ]

        with Looking(options.place) as looking:
            shape, wanted = looking.run(between)
        return planned(options, shape, narrowed(wanted, shape, self._filters))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)


class FilteredReader(QueueReader):
    """A class of its own: Spark refuses a reader that takes filters unless the session allows it."""

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802 - Spark's name for it
        """They choose buckets; Spark tests the rows."""
        self._filters = list(filters)
        return self._filters


def planned(options: ReadOptions, shape: QueueShape, wanted: Sequence[Run]) -> list[InputPartition]:
    """Never an empty list: Spark would make a partition of its own of that, which nobody could read."""
    now_ms = SystemClock().now().wall_ms
    lanes = {lane.number: lane for lane in shape.lanes}
    runs = cut(wanted, shape.bucket_size, options.min_partitions, options.most_buckets) or [Run(0, 0, 0)]
    return [QueuePartition(run, _lane(shape, lanes.get(run.lane), now_ms), shape.incarnation) for run in runs]


def _lane(shape: QueueShape, lane: LaneShape | None, now_ms: int) -> Lane:
    if lane is None:
        return Lane(0, shape.bucket_size, 0, shape.retention_ms, now_ms)
    return Lane(lane.number, shape.bucket_size, lane.purged, shape.retention_ms, now_ms)


def read_partition(options: ReadOptions, partition: Any) -> Iterator[pa.RecordBatch]:
    run, lane = partition.run, partition.lane
    if run.end <= run.first:
        return

    def lost(floor: int) -> None:
        if options.fail_on_data_loss:
            last = min(run.end, floor * lane.bucket_size) - 1
            raise DataLost(
                f"ids {run.first} to {last} of lane {run.lane} were dropped before they were read: the queue's "
                "history is over for them (failOnDataLoss=false passes over what is gone)"
            )

    times = options.start.time_ms, options.end.time_ms
    names = raw_names((*options.columns, "enqueued_at") if times != (None, None) else options.columns)
    for raw in read_run(options.place, partition.incarnation, lane.bucket_size, run, names, lane.now_ms, lost):
        chosen = between_times(raw, *times)
        if chosen.num_rows:
            yield shaped(chosen, options.columns, options.payload, lane)
