"""Run as a process: one job on Spark, to be killed. It says `begun`, the steps that it takes, and `done`.

    python -m bench.spark_job JSON
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from angelhair.identities import RandomIdentities
from angelhair.settings import ACCOUNT
from angelhair.spark.pipelines.archive import archive
from angelhair.spark.place import Place
from bench.sparks import session

ARCHIVE, BATCH, STREAM = "archive", "batch", "stream"
JOBS = (ARCHIVE, BATCH, STREAM)

MASTER = "local[2,4]"
"""Two tasks at once; a task that is killed is tried again, up to three times."""

TASKS = 8
"""Of a batch that is written."""

MESSAGES_A_BLOCK = 100
MESSAGES_A_TRIGGER = 500
BUCKETS_A_COMMIT = 10
"""Small, so that a short job has many moments in which it can be killed."""


@dataclass(frozen=True)
class Job:
    kind: str
    options: dict[str, str]
    """Where the queues are."""
    queue: str
    """Of the archive and of the stream; a batch has rows of its own."""
    target: str
    folder: str
    """The lake, or the checkpoint."""
    first: int = 0
    rows: int = 0
    """Of a batch."""

    def as_text(self) -> str:
        return json.dumps(asdict(self))


def tell(text: str) -> None:
    print(text, flush=True)


def do(spark: SparkSession, job: Job) -> None:
    if job.kind == ARCHIVE:
        place = Place.of({name.lower(): value for name, value in job.options.items()})
        archive(
            spark, place, ACCOUNT, job.queue, job.folder, RandomIdentities(), tell,
            most_buckets_a_commit=BUCKETS_A_COMMIT,
        )
    elif job.kind == BATCH:
        rows = spark.range(job.first, job.first + job.rows, 1, TASKS).select(body().alias("body"))
        writing = rows.write.format("angelhair").mode("append").options(**job.options, queue=job.target)
        writing.option("blockMessages", MESSAGES_A_BLOCK).option("writeId", f"rows from {job.first}").save()
    else:
        reading = spark.readStream.format("angelhair").options(**job.options, queue=job.queue)
        arriving = reading.option("maxMessagesPerTrigger", MESSAGES_A_TRIGGER).load().select("body")
        writing_on = arriving.writeStream.format("angelhair").options(**job.options, queue=job.target)
        writing_on = writing_on.option("blockMessages", MESSAGES_A_BLOCK).option("checkpointLocation", job.folder)
        writing_on.trigger(availableNow=True).start().awaitTermination()


def body() -> Column:
    return f.concat(f.lit("row "), f.col("id").cast("string"))


def main(text: str) -> None:
    job = Job(**json.loads(text))
    settings = {
        # A worker lives for one task: whichever is killed was at work.
        "spark__python__worker__reuse": "false",
        # A driver that is killed while it notes its very first batch leaves half a file in the checkpoint. Without this
        # Spark 4.3 would not start there again, though it has done nothing yet.
        "spark__sql__streaming__verifyCheckpointDirectoryEmptyOnStart": "false",
    }
    with session(master=MASTER, driver_memory="1g", **settings) as spark:
        tell("begun")
        do(spark, job)
        tell("done")


if __name__ == "__main__":
    main(sys.argv[1])
