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
from angelhair.errors import InvalidRequest
from angelhair.model import DATABAG, TIMELINE
from angelhair.spark import databags, missing, timelines
from angelhair.spark.choosing import chosen
from angelhair.spark.columns import checked_names, raw_names, schema_of
from angelhair.spark.holding import NOTHING, Held
from angelhair.spark.looking import Looking
from angelhair.spark.options import ReadOptions
from angelhair.spark.planning import LaneShape, QueueShape, Run, cut, found
from angelhair.spark.points import Times
from angelhair.spark.reading.runs import purged_below, read_run
from angelhair.spark.shaping import Lane, as_asked, between_times, shaped
from angelhair.spark.writing.options import WriteOptions

ALWAYS = Times()

WITHOUT_BUCKETS = {TIMELINE: timelines.partitions, DATABAG: databags.partitions}
"""By kind of a queue that has none: what there is to read of it."""


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

    def __init__(
        self, run: Run, lane: Lane, incarnation: str, files: tuple[str, ...] | None = None, window: Times = ALWAYS
    ) -> None:
        super().__init__(run)
        self.run = run
        self.lane = lane
        self.incarnation = incarnation
        self.files = files
        """Of the lake; None: it is read from the queue."""
        self.window = window


class QueueReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        with Looking(self._options.place) as looking:
            options = self._options
            queue = looking.run(lambda store: found(store, options.account, options.queue))
            partitions_of = WITHOUT_BUCKETS.get(queue.settings.kind)
            if partitions_of is not None:
                return looking.run(lambda store: partitions_of(store, queue, options, self._filters))
            choice = chosen(looking, options, self._filters)
        return planned(options, choice.shape, choice.runs, choice.held, choice.window)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)


class FilteredReader(QueueReader):
    """A class of its own: Spark refuses a reader that takes filters unless the session allows it."""

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802 - Spark's name for it
        """They choose buckets; Spark tests the rows."""
        self._filters = list(filters)
        return self._filters


def planned(
    options: ReadOptions, shape: QueueShape, wanted: Sequence[Run], held: Held = NOTHING, window: Times = ALWAYS
) -> list[InputPartition]:
    """Never an empty list: Spark would make a partition of its own of that, which nobody could read."""
    now_ms = SystemClock().now().wall_ms
    lanes = {lane.number: lane for lane in shape.lanes}
    runs = cut(wanted, shape.bucket_size, options.min_partitions, options.most_buckets) or [Run(0, 0, 0)]
    return [
        QueuePartition(run, _lane(shape, lanes.get(run.lane), now_ms), shape.incarnation, held.files_of(run), window)
        for run in runs
    ]


def _lane(shape: QueueShape, lane: LaneShape | None, now_ms: int) -> Lane:
    if lane is None:
        return Lane(0, shape.bucket_size, 0, shape.retention_ms, now_ms)
    return Lane(lane.number, shape.bucket_size, lane.purged, shape.retention_ms, now_ms)


def read_partition(options: ReadOptions, partition: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, timelines.TimelinePartition):
        return timelines.read(options, partition)
    if isinstance(partition, databags.BagPartition):
        return databags.read(options, partition)
    if partition.run.end <= partition.run.first:
        return iter(())
    return _from_queue(options, partition) if partition.files is None else _from_lake(options, partition)


def _from_lake(options: ReadOptions, partition: QueuePartition) -> Iterator[pa.RecordBatch]:
    from angelhair.spark.reading import lake

    run, names = partition.run, options.columns
    for kept in lake.read(partition.files or (), partition.incarnation, run, names, options.times, partition.window):
        yield as_asked(kept, names, options.payload, run.lane)


def _from_queue(options: ReadOptions, partition: QueuePartition) -> Iterator[pa.RecordBatch]:
    run, lane = partition.run, partition.lane

    def lost(floor: int) -> None:
        if options.fail_on_data_loss:
            gone = run._replace(end=min(run.end, floor * lane.bucket_size))
            raise missing.dropped(gone, purged_below(options.place, partition.incarnation, run.lane))

    times = options.times
    names = raw_names(options.columns if times == ALWAYS else (*options.columns, "enqueued_at"))
    for raw in read_run(options.place, partition.incarnation, lane.bucket_size, run, names, lane.now_ms, lost):
        put_then = between_times(raw, *times)
        if put_then.num_rows:
            yield shaped(put_then, options.columns, options.payload, lane)
