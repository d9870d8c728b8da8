"""`angelhair pipeline load`."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Sequence
from typing import Any

from angelhair.cli.exits import DONE, WrongUsage
from angelhair.cli.output import print_json
from angelhair.cli.parsers import whole
from angelhair.cli.pipeline.jobs import add_job, working


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "load", "put the rows of a table into a queue",
        "Puts each row of anything that Spark can read into a queue. Columns body, attributes, key, delay and due_at "
        "are taken as they are called; --column names another one, or any SQL expression. A load that ended half way "
        "is run again with the same --name, and goes on.",
        """
        angelhair pipeline load --queue orders --from orders.parquet --column body=payload
        angelhair pipeline load --queue orders --from rows.json --format json --column 'body=to_json(struct(*))'""",
        run, lake=False,
    )
    parser.add_argument("--from", dest="source", required=True, metavar="PATH", help="a file, a folder or a table")
    parser.add_argument("--format", default="parquet", metavar="KIND",
                        help="parquet, csv, json, orc, table … (default: parquet)")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the reader")
    parser.add_argument("--column", action="append", default=[], metavar="NAME=EXPRESSION",
                        help="what a message's column is, in SQL over the table's columns")
    parser.add_argument("--name", metavar="TEXT", help="what this load is called (default: a new name)")
    parser.add_argument("--rate", type=whole(1), metavar="N", help="messages a second of each task, at most")


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.load import load, table_of

    columns, options = pairs("column", arguments.column), pairs("option", arguments.option)
    name = arguments.name or f"load-{uuid.uuid4().hex[:12]}"
    more = {} if arguments.rate is None else {"maxMessagesPerSecond": str(arguments.rate)}
    with working(arguments) as job:
        job.tell(f"load, called {name}")
        table = table_of(job.spark, arguments.source, arguments.format, options)
        done = load(table, job.place, job.account, job.queue, name, columns, more)
    if arguments.json:
        print_json(done.as_json())
    else:
        print(f"{done.rows:,} rows are in {done.queue}; the load is called {done.name}")
    return DONE


def pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise WrongUsage(f"--{option} {text}: NAME=… is wanted")
        found[name] = value
    return found
