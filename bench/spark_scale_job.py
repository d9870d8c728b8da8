"""Run as a process: archive, audit and insight of one queue, each timed.

    python -m bench.spark_scale_job DATA QUEUE LAKE

It says `begun`, the name of each job before it, `NAME SECONDS` after it, and `done`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from angelhair.identities import RandomIdentities
from angelhair.settings import ACCOUNT, DATABASE_NAME
from angelhair.spark.pipelines.archive import archive
from angelhair.spark.place import Place
from bench.sparks import session

DRIVER_MEMORY = "1536m"
"""Java's heap. With what Java needs beside it and with two workers it stays below 4 GiB."""

ARCHIVE, AUDIT, INSIGHT = "archive", "audit", "insight"


def jobs(spark: SparkSession, place: Place, queue: str, lake: str) -> dict[str, Callable[[], None]]:
    from angelhair.spark.pipelines.audit import audit
    from angelhair.spark.pipelines.insight import insight

    def quietly(_: str) -> None:
        """Nobody watches."""

    def archived() -> None:
        archive(spark, place, ACCOUNT, queue, lake, RandomIdentities())

    def audited() -> None:
        found = audit(spark, place, ACCOUNT, queue, lake, quietly)
        if not found.clean:
            raise RuntimeError(f"the audit finds {found.as_json()['findings']}")

    def seen() -> None:
        insight(spark, place, ACCOUNT, queue, lake, quietly)

    return {ARCHIVE: archived, AUDIT: audited, INSIGHT: seen}


def main(data: str, queue: str, lake: str) -> None:
    place = Place(path=str(Path(data) / DATABASE_NAME))
    with session(driver_memory=DRIVER_MEMORY) as spark:
        print("begun", flush=True)
        for name, job in jobs(spark, place, queue, lake).items():
            print(name, flush=True)
            began = time.perf_counter()
            job()
            print(f"{name} {time.perf_counter() - began:.3f}", flush=True)
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
