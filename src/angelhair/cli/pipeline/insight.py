"""`angelhair pipeline insight`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from angelhair.cli.exits import DONE
from angelhair.cli.output import counted, print_json
from angelhair.cli.pipeline.jobs import add_job, working

if TYPE_CHECKING:
    from angelhair.spark.pipelines.insight import Insight


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "insight", "rates, waits, redeliveries and poison messages, as tables and a page",
        "Counts the finished buckets that it has not counted yet, minute by minute, keeps what came of it as Parquet "
        "tables under LAKE/_insight/QUEUE, and draws a page of all of it and of what is not finished yet. Run it again "
        "whenever you want a newer page: each message is counted once.",
        """
        angelhair pipeline insight --queue orders --lake ./lake --data ./angelhair-data --page orders.html
        angelhair pipeline insight --queue orders --lake ./lake --data ./angelhair-data --field customer.country""",
        run,
    )
    parser.add_argument("--page", metavar="FILE", help="where the page goes (default: beside the tables)")
    parser.add_argument("--group", metavar="ATTRIBUTE", help="count the values of an attribute, such as content_type")
    parser.add_argument(
        "--field", action="append", default=[], metavar="PATH",
        help="count the values of a field of JSON bodies, such as customer.country; may be given several times",
    )
    parser.add_argument("--dry-run", action="store_true", help="say which buckets would be counted, and count none")


def run(arguments: argparse.Namespace) -> int:
    from angelhair.spark.pipelines.insight import Wanted, insight

    wanted = Wanted(arguments.group, arguments.field, arguments.page, arguments.dry_run)
    with working(arguments) as job:
        done = insight(job.spark, job.place, job.account, job.queue, job.lake, job.tell, wanted)
    if arguments.json:
        print_json(done.as_json())
    elif arguments.dry_run:
        print(f"would count {_buckets(done)}")
    else:
        print(f"{counted(done.messages, 'message')} counted ({_buckets(done)}); the page is {done.page}")
    return DONE


def _buckets(done: Insight) -> str:
    spans = [f"buckets {first} to {end - 1} of lane {lane}" for lane, (first, end) in done.buckets.items()]
    return ", ".join(spans) or "no bucket"
