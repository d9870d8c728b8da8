"""`angelhair pipeline replay`."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import print_json
from angelhair.cli.parsers import whole
from angelhair.cli.pipeline.jobs import add_job, working


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "replay", "put messages of a queue's history into a queue once more",
        "Reads what the lake and the queue hold, chosen by ids, by times or by any filter in SQL over the columns of "
        "the table, and puts it into a queue. Run again it goes on where it ended, and does nothing once it is done; "
        "another --name replays once more.",
        """
        angelhair pipeline replay --queue orders --lake ./lake --to orders-again --start 2026-11-01T00:00:00Z
        angelhair pipeline replay --queue orders --lake ./lake --to orders --where "state = 'dead'" --rate 100""",
        run,
    )
    parser.add_argument("--to", required=True, metavar="QUEUE", help="where the messages go; it must be there")
    parser.add_argument("--start", default="earliest", metavar="POINT",
                        help="earliest, archived, ids such as '{\"0\": 17}', or a time (default: earliest)")
    parser.add_argument("--end", default="latest", metavar="POINT",
                        help="ids or a time, not included (default: all that is settled when it is first run)")
    parser.add_argument("--where", default="", metavar="SQL", help="which of them, such as \"deliveries > 3\"")
    parser.add_argument("--name", metavar="TEXT", help="what this replay is called (default: by what it is asked for)")
    parser.add_argument("--rate", type=whole(1), metavar="N", help="messages a second, at most")


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.replay import Asked, replay

    asked = Asked(arguments.queue, arguments.to, arguments.start, arguments.end, arguments.where)
    with working(arguments) as job:
        done = replay(
            job.spark, job.place, job.account, job.lake, asked, arguments.name, arguments.rate, job.tell
        )
    if arguments.json:
        print_json(done.as_json())
    else:
        print(
            f"{done.messages:,} messages of {done.queue} went to {done.to}, {done.repeated:,} had gone before; the "
            f"replay is called {done.name}"
        )
    return DONE
