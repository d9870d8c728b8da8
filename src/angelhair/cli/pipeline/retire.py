"""`angelhair pipeline retire`."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import print_json
from angelhair.cli.pipeline.jobs import add_job, place_of
from angelhair.identities import RandomIdentities
from angelhair.settings import ACCOUNT


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "retire", "drop what the lake has, without waiting for background work",
        "Asks the engine to drop the buckets that may go: finished, their history over and, if the queue has `archive` "
        "on, behind its archive mark. Servers do the same in their own time. Says what went and what stays. Needs no "
        "Spark.",
        """
        angelhair pipeline retire --queue orders --data ./angelhair-data
        angelhair pipeline retire --queue orders --contact-points 10.0.0.1 --dry-run""",
        run, lake=False, spark=False,
    )
    parser.add_argument("--dry-run", action="store_true", help="drop nothing, say what is finished")


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.retire import retire

    done = retire(place_of(arguments), ACCOUNT, arguments.queue, RandomIdentities(), arguments.dry_run)
    if arguments.json:
        print_json(done.as_json())
        return DONE
    waits = "the end of their history or for the lake" if done.archive else "the end of their history"
    print(f"{sum(done.went.values()):,} buckets went; {sum(done.kept.values()):,} finished ones wait for {waits}")
    return DONE
