"""Run as a process: source, stream and archive in a Spark session of its own, of whichever kind. Prints JSON.

    another_session.py MASTER DATA QUEUE FOLDER PART...    MASTER: local[1], local-cluster[2,1,1024], sc://127.0.0.1:PORT
    another_session.py serve                               a Connect server: prints its port, ends with its input

The session has to find the format by itself: nothing is registered before the filters are tried.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from angelhair.settings import ACCOUNT, DATABASE_NAME
from angelhair.spark import register
from angelhair.spark.pipelines.archive import archive
from angelhair.spark.place import Place
from tests.queues import Identities

SERVING = sys.argv[1:] == ["serve"]


def session(master: str) -> SparkSession:
    builder = SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
    if master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_HOME"] = str(own_home(Path.cwd() / "spark"))
    return (
        builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", "0")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin" if SERVING else "")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"])
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def own_home(home: Path) -> Path:
    """Workers of a local cluster are started by the scripts of the Spark that pip installed, and leave what they print
    in its home: so it is one that is made of links."""
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    return home


class Parts:
    """What can be tried. Each returns what it found; they are tried in the order that is given."""

    def __init__(self, spark: SparkSession, data: str, queue: str, folder: Path) -> None:
        self.spark = spark
        self.place = Place(path=str(Path(data) / DATABASE_NAME))
        self.queue = queue
        self.folder = folder
        self.options = {"data": data, "queue": queue}

    def read(self) -> Any:
        frame = self.spark.read.format("angelhair").options(**self.options).load()
        return sorted(row.number for row in frame.collect())

    def sql(self) -> Any:
        options = ", ".join(f"{name} '{value}'" for name, value in self.options.items())
        self.spark.sql(f"CREATE TEMPORARY VIEW orders USING angelhair OPTIONS ({options})")
        return sorted(row.number for row in self.spark.sql("SELECT number FROM orders WHERE bucket = 1").collect())

    def stream(self) -> Any:
        arriving = self.spark.readStream.format("angelhair").options(**self.options, maxMessagesPerTrigger="25").load()
        writing = arriving.writeStream.format("parquet").option("checkpointLocation", str(self.folder / "checkpoint"))
        query = writing.option("path", str(self.folder / "streamed")).trigger(availableNow=True).start()
        query.awaitTermination()
        return sorted(row.number for row in self.spark.read.parquet(str(self.folder / "streamed")).collect())

    def filters(self) -> Any:
        register(self.spark)
        frame = self.spark.read.format("angelhair").options(**self.options).load()
        return sorted(row.number for row in frame.where("bucket = 2").collect())

    def archive(self) -> Any:
        done = archive(self.spark, self.place, ACCOUNT, self.queue, str(self.folder / "lake"), Identities())
        return {"messages": done.messages, "marks": done.marks}

    def lake(self) -> Any:
        reader = self.spark.read.format("angelhair").options(**self.options, payload="variant")
        frame = reader.option("lake", str(self.folder / "lake")).load()
        fields = frame.selectExpr("number", "kept_in", "variant_get(body, '$.n', 'int') as field")
        return sorted((row.number, row.kept_in, row.field) for row in fields.collect())

    def executors(self) -> Any:
        spread = self.spark.range(0, 4, 1, 4).mapInArrow(where_tasks_run, "executor string")
        return len({row.executor for row in spread.collect()})

    def session(self) -> Any:
        return type(self.spark).__module__


def where_tasks_run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"executor": [os.environ.get("SPARK_EXECUTOR_DIRS", "")]})


def serve() -> None:
    spark = session("local[2]")
    service: Any = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")  # type: ignore[attr-defined]
    print(getattr(service, "MODULE$").localPort(), flush=True)
    sys.stdin.read()
    spark.stop()


def main(master: str, data: str, queue: str, folder: str, *names: str) -> None:
    spark = session(master)
    try:
        parts = Parts(spark, data, queue, Path(folder))
        print(json.dumps({name: getattr(parts, name)() for name in names}))
    finally:
        spark.stop()


if __name__ == "__main__":
    serve() if SERVING else main(*sys.argv[1:])
