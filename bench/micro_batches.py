"""How long a micro-batch takes, by Spark's own count: from the trigger until it is over."""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

from pyspark.sql import DataFrame

WARM_UP = 5
"""Batches before those that count: the first ones compile plans and start processes."""

PATIENCE_SECONDS = 120

LOOK_SECONDS = 0.05


def milliseconds(stream: DataFrame, rows: int, batches: int) -> float:
    """The median of so many batches of so many rows each, one right after the other, to a sink that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        writing = stream.writeStream.format("noop").option("checkpointLocation", folder)
        query = writing.trigger(processingTime="0 seconds").start()
        try:
            return statistics.median(_durations(query, rows, batches))
        finally:
            query.stop()


def _durations(query: Any, rows: int, batches: int) -> list[float]:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        done = [one for one in query.recentProgress if "addBatch" in one["durationMs"] and one["batchId"] >= WARM_UP]
        found = [float(one["durationMs"]["triggerExecution"]) for one in done if one["numInputRows"] == rows]
        if len(found) >= batches:
            return found[:batches]
        if not query.isActive or time.monotonic() > end:
            raise RuntimeError(f"{len(found)} of {batches} batches of {rows} rows: {query.exception()} {done[-1:]}")
        time.sleep(LOOK_SECONDS)
