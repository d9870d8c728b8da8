"""`angelhair pipeline archive`."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import print_json
from angelhair.cli.pipeline.jobs import add_job, working
from angelhair.identities import RandomIdentities


def add_to(verbs: Any) -> None:
    add_job(
        verbs, "archive", "bring finished buckets into a lake, each once",
        "Writes what is finished, and not in the lake yet, as Parquet files of a Delta table under LAKE/QUEUE, checks "
        "what it wrote against the queue, and then raises the queue's archive mark, behind which a queue with "
        "`archive` on drops its buckets. Run it again whenever there is more.",
        """
        angelhair pipeline archive --queue orders --lake ./lake --data ./angelhair-data
        angelhair pipeline archive --queue orders --lake s3://history/queues --contact-points 10.0.0.1""",
        run,
    )


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.archive import archive

    with working(arguments) as job:
        done = archive(job.spark, job.place, job.account, job.queue, job.lake, RandomIdentities(), job.tell)
    if arguments.json:
        print_json(done.as_json())
    else:
        marks = ", ".join(f"lane {lane}: {bucket}" for lane, bucket in done.marks.items()) or "none"
        print(f"{done.messages:,} messages in {done.files:,} files went to {done.lake}; archive mark {marks}")
    return DONE
