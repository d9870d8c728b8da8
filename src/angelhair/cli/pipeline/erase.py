"""`angelhair pipeline erase`."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import counted, print_json
from angelhair.cli.pipeline.jobs import Job, add_job, working
from angelhair.errors import QueueNotFound
from angelhair.model import MessageId


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "erase", "erase what messages said from a lake, for good",
        "Writes the lake's files that hold these messages anew, without their bodies and attributes, and deletes the "
        "old ones at once: older versions of the table lose them too. The rows stay, with the state `erased`. Erasing "
        "again does no harm, and finishes what was left half way.",
        """
        angelhair pipeline erase --queue orders --lake ./lake --data ./angelhair-data --id 0-17
        angelhair pipeline erase --queue orders --lake ./lake --data ./angelhair-data --id 0-17 --id 1-4""",
        run,
    )
    parser.add_argument(
        "--id", action="append", required=True, metavar="ID", dest="ids", help="a message's id; again for more"
    )
    parser.add_argument(
        "--incarnation", metavar="NAME", help="of which of the queues that had this name (default: the one of now)"
    )


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.erase import erase_from_lake

    ids = [MessageId.parse(text) for text in arguments.ids]
    with working(arguments) as job:
        incarnation = arguments.incarnation or _incarnation(job)
        done = erase_from_lake(job.spark, job.lake, job.queue, ids, incarnation, job.tell)
    if arguments.json:
        print_json(done.as_json())
        return DONE
    print(
        f"{counted(len(done.erased), 'message')} erased from {done.lake}; {len(done.already):,} had been before, "
        f"{len(done.absent):,} were never there; {counted(done.deleted, 'file')} with what they said went"
    )
    if done.deleted:
        print("older versions of the table can no longer be read where they need those files")
    print("what the queue itself still has of them goes when it drops their buckets, behind the archive mark")
    return DONE


def _incarnation(job: Job) -> str | None:
    """None when the queue is gone: then the lake has to say."""
    from angelhair.spark.looking import Looking
    from angelhair.spark.planning import look

    try:
        with Looking(job.place) as looking:
            return looking.run(lambda store: look(store, job.account, job.queue)).incarnation
    except QueueNotFound:
        return None
