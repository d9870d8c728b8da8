"""Work that is handed to tasks and answered by them, one piece each."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from angelhair.errors import StoreRefused

W = TypeVar("W")
R = TypeVar("R")


def in_tasks(spark: SparkSession, do: Callable[[W], R], works: Sequence[W]) -> list[R]:
    """The answers, in any order. Through a DataFrame, as that is what every kind of session has. What a task refuses
    is raised here as it is: it would be refused again, and Spark would bury it in what it says of its own."""
    if not works:
        return []

    def do_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            answers = [pickle.dumps(_answer(do, pickle.loads(work))) for work in batch.column("work").to_pylist()]
            yield pa.RecordBatch.from_pydict({"answer": pa.array(answers, pa.binary())})

    frame = spark.createDataFrame([(pickle.dumps(work),) for work in works], "work binary")
    rows = frame.repartition(len(works)).mapInArrow(do_all, "answer binary").collect()
    answers: list[R | StoreRefused] = [pickle.loads(bytes(row.answer)) for row in rows]
    done = []
    for answer in answers:
        if isinstance(answer, StoreRefused):
            raise answer
        done.append(answer)
    return done


def _answer(do: Callable[[W], R], work: W) -> R | StoreRefused:
    try:
        return do(work)
    except StoreRefused as refused:
        return refused
