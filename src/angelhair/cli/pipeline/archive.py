"""`angelhair pipeline archive`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

from angelhair.cli.exits import DONE, complain
from angelhair.cli.output import print_json
from angelhair.cli.parsers import duration
from angelhair.cli.pipeline.jobs import Job, add_job, working
from angelhair.errors import Unavailable
from angelhair.identities import RandomIdentities

if TYPE_CHECKING:
    from angelhair.spark.pipelines.archive import Archived

# As the lake knows them; written here too, so that the help is printed without importing Spark.
FORMATS = ("delta", "iceberg", "parquet")


def add_to(verbs: Any) -> None:
    parser = add_job(
        verbs, "archive", "bring finished buckets into a lake, each once",
        "Writes what is finished, and not in the lake yet, as Parquet files of a table under LAKE/QUEUE, checks "
        "what it wrote against the queue, and then raises the queue's archive mark, behind which a queue with "
        "`archive` on drops its buckets. Run it again whenever there is more, or have it do so with --every.",
        """
        angelhair pipeline archive --queue orders --lake ./lake --data ./angelhair-data
        angelhair pipeline archive --queue orders --lake ./lake --data ./angelhair-data --every 60s
        angelhair pipeline archive --queue orders --lake s3://history/queues --contact-points 10.0.0.1""",
        run,
    )
    parser.add_argument(
        "--format", choices=FORMATS,
        help="what the table is, when it is made: delta (the default), iceberg, or parquet with a manifest",
    )
    parser.add_argument(
        "--every", type=duration, metavar="DURATION",
        help="go on until interrupted, and look for more so long after each round; a line for each that found some",
    )


def run(arguments: argparse.Namespace) -> int:
    with working(arguments) as job:
        if arguments.every is None:
            _print(_round(job, arguments, Event()), arguments.json)
        else:
            until_stopped(job, arguments)
    return DONE


def _round(job: Job, arguments: argparse.Namespace, stop: Event, sweeping: bool = True) -> Archived:
    from angelhair.spark.pipelines.archive import archive

    return archive(
        job.spark, job.place, job.account, job.queue, job.lake, RandomIdentities(), job.tell,
        lake_format=arguments.format, stopping=stop.is_set, sweeping=sweeping,
    )


def until_stopped(job: Job, arguments: argparse.Namespace) -> None:
    """One round after the other. What is under way when it is asked to stop is brought to its end."""
    from angelhair.spark.lakes import LakeMoved

    first = True
    with _asked_to_stop() as stop:
        while not stop.is_set():
            try:
                done = _round(job, arguments, stop, sweeping=first)
                if done.files or done.swept:
                    _print(done, arguments.json, one_line=True)
                first = False
            except LakeMoved:
                # Another job did it; how far it came is seen in the next round.
                pass
            except Unavailable as away:
                complain(arguments.program, f"the store is away, trying again in {arguments.every:g} s: {away}")
            stop.wait(arguments.every)


@contextmanager
def _asked_to_stop() -> Iterator[Event]:
    """Set by the first SIGINT or SIGTERM. It comes after Spark's own handlers, which would cancel what is running."""
    stop = Event()

    def handle(_: int, __: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(done: Archived, as_json: bool, one_line: bool = False) -> None:
    if as_json:
        print_json(done.as_json(), one_line=one_line)
    else:
        marks = ", ".join(f"lane {lane}: {bucket}" for lane, bucket in done.marks.items()) or "none"
        print(f"{done.messages:,} messages in {done.files:,} files went to {done.lake}; archive mark {marks}")
    sys.stdout.flush()
