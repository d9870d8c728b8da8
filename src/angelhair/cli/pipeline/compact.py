"""`angelhair pipeline compact`."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import counted, print_json
from angelhair.cli.parsers import duration, whole
from angelhair.cli.pipeline.jobs import add_job, on_lake


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "compact", "join a lake's small files, and delete what no version needs",
        "Joins small files of neighbouring buckets into larger ones, in one step of the table for many of them. What "
        "was joined stays for who reads an older version, and goes when it has not been needed for --vacuum-after. An "
        "archive job may run at the same time.",
        """
        angelhair pipeline compact --queue orders --lake ./lake
        angelhair pipeline compact --queue orders --lake ./lake --target-bytes 268435456 --vacuum-after 1d""",
        run, store=False,
    )
    parser.add_argument(
        "--target-bytes", type=whole(1), metavar="N", help="the size of a file; those below half of it are joined "
        "(default: 134217728)",
    )
    parser.add_argument(
        "--vacuum-after", type=duration, metavar="DURATION", help="how long a file that was replaced is kept "
        "(default: 7d)",
    )


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.compact import TARGET_BYTES, VACUUM_AFTER_SECONDS, compact

    after = VACUUM_AFTER_SECONDS if arguments.vacuum_after is None else arguments.vacuum_after
    with on_lake(arguments) as job:
        done = compact(job.spark, job.queue, job.lake, job.tell, arguments.target_bytes or TARGET_BYTES, after)
    if arguments.json:
        print_json(done.as_json())
    else:
        print(
            f"{counted(done.joined, 'file')} with {counted(done.messages, 'message')} became {done.files:,} in "
            f"{done.lake}; {done.vacuumed:,} that nobody needs went"
        )
    return DONE
