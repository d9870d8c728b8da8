"""Ids that have a state row, as a table: read by tasks, a run of buckets each."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from angelhair.spark.options import MOST_BUCKETS
from angelhair.spark.place import Place
from angelhair.spark.planning import QueueShape, Run, cut
from angelhair.spark.reading.states import state_numbers


class Work(NamedTuple):
    """It travels to a task."""

    place: Place
    incarnation: str
    bucket_size: int
    run: Run


def state_ids(spark: SparkSession, place: Place, shape: QueueShape) -> DataFrame:
    """`lane, number`."""
    wanted = [Run(lane.number, shape.start_of(lane), lane.next_id) for lane in shape.lanes]
    runs = cut(wanted, shape.bucket_size, 2, MOST_BUCKETS)
    works = [(pickle.dumps(Work(place, shape.incarnation, shape.bucket_size, run)),) for run in runs]
    frame = spark.createDataFrame(works, "work binary")
    return frame.repartition(max(1, len(works))).mapInArrow(_read_all, "lane int, number bigint")


def _read_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for pickled in batch.column("work").to_pylist():
            work: Work = pickle.loads(pickled)
            for numbers in state_numbers(work.place, work.incarnation, work.bucket_size, work.run):
                lanes = pa.repeat(pa.scalar(work.run.lane, pa.int32()), len(numbers))
                yield pa.RecordBatch.from_arrays([lanes, numbers], ["lane", "number"])
