"""Spark sessions for benchmarks and proofs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.engine.places import bodies
from angelhair.spark import register
from bench.here import ROOT

MASTER = "local[2]"


@contextmanager
def session(
    jars: Sequence[Path] = (), master: str = MASTER, driver_memory: str = "2g", **settings: str
) -> Iterator[SparkSession]:
    """One in this process. `settings`: Spark's, with two underscores for each dot."""
    # Without these, tasks would run on whatever `python3` is first on the path, and would not find this folder.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    paths = [str(ROOT / "src"), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(str(Path(path).absolute()) for path in paths if path))
    builder = (
        SparkSession.builder.master(master)
        .appName("angelhair-bench")
        .config("spark.driver.memory", driver_memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    spark = register(builder.getOrCreate())
    try:
        yield spark
    finally:
        spark.stop()


def as_bodies(messages: DataFrame, incarnation: str, bucket_size: int) -> DataFrame:
    """Rows as they lie in the table of bodies: what whoever writes that table without us has to bring along. They are
    as long as ours are, times included."""
    beginning = bodies(incarnation, 0, 0).key.removesuffix("0")
    now_ms = f.lit(time.time_ns() // 1_000_000)
    return messages.select(
        f.concat(f.lit(beginning), (f.col("number") / bucket_size).cast("bigint")).alias("partition"),
        f.col("number").alias("key"), "body", now_ms.alias("enqueued_at"), now_ms.alias("keyed"),
    )
