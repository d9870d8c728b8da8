"""`angelhair pipeline erase`."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import counted, print_json
from angelhair.cli.pipeline.jobs import add_job, working
from angelhair.identities import RandomIdentities
from angelhair.model import MessageId


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "erase", "erase what messages said from a queue and its lake, for good",
        "Overwrites what these messages say in the queue, where nobody is given them any more, and writes the lake's "
        "files that hold them anew, without their bodies and attributes; the old files are deleted at once, so older "
        "versions of the table lose them too. Their rows stay, with the state `erased`. Who has received a message has "
        "it, and so has the queue it was moved to. Erasing again does no harm, and finishes what was left half way.",
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
    from angelhair.spark.pipelines.forget import forget

    ids = [MessageId.parse(text) for text in arguments.ids]
    with working(arguments) as job:
        done = forget(
            job.spark, job.place, job.account, job.queue, job.lake, ids, RandomIdentities(), arguments.incarnation,
            job.tell,
        )
    if arguments.json:
        print_json(done.as_json())
        return DONE
    print(f"{counted(len(done.in_queue), 'message')} erased from the queue {done.queue}")
    lake = done.in_lake
    if lake is not None:
        print(
            f"{counted(len(lake.erased), 'message')} erased from {lake.lake}; {len(lake.already):,} had been before, "
            f"{len(lake.absent):,} were never there; {counted(lake.deleted, 'file')} with what they said went"
        )
        if lake.deleted:
            print("older versions of the table can no longer be read where they need those files")
    return DONE
