"""`angelhair pipeline`: what is done with a queue's history, on Spark. So far: archive."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angelhair.cli.config import add_settings_flags, complain, read_settings
from angelhair.cli.exits import DONE, Ended
from angelhair.cli.installing import to_install
from angelhair.cli.opening import database_path
from angelhair.cli.output import on_terminal, print_json
from angelhair.cli.parsers import add_command, add_group
from angelhair.server.configuration import SettingsRefused
from angelhair.server.identities import RandomIdentities
from angelhair.server.service import ACCOUNT
from angelhair.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from angelhair.spark.place import Place

MASTER = "local[*]"


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "pipeline", "archive a queue's history, on Spark",
        "Jobs on a queue's history. They read and write the store directly, beside the servers; each can be stopped at "
        "any point and run again.",
    )
    parser = add_command(
        verbs, "archive", "bring finished buckets into a lake, each once",
        "Writes what is finished, and not in the lake yet, as Parquet files of a Delta table under LAKE/QUEUE, checks "
        "what it wrote against the queue, and then raises the queue's archive mark, behind which a queue with "
        "`archive` on drops its buckets. Run it again whenever there is more.",
        """
        angelhair pipeline archive --queue orders --lake ./lake --data ./angelhair-data
        angelhair pipeline archive --queue orders --lake s3://history/queues --contact-points 10.0.0.1""",
        run_archive,
    )
    parser.add_argument("--queue", required=True, metavar="QUEUE", help="the queue")
    parser.add_argument("--lake", required=True, metavar="DIR", help="a directory, or an object store's address")
    parser.add_argument("--master", default=MASTER, metavar="URL", help=f"the Spark cluster (default: {MASTER})")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_settings_flags(parser, ["embedded", "cassandra"])


def run_archive(arguments: argparse.Namespace) -> int:
    try:
        settings = read_settings(arguments).settings
    except SettingsRefused as refused:
        return complain("pipeline archive", refused)
    try:
        from angelhair.spark.pipelines.archive import archive
    except ModuleNotFoundError as error:
        raise Ended(1, f"{error.name} is not installed; {to_install('spark')}") from error

    def tell(step: str) -> None:
        if on_terminal(sys.stderr) and not step.endswith(" done"):
            print(f"{step} …", file=sys.stderr, flush=True)

    lake = arguments.lake if "://" in arguments.lake else str(Path(arguments.lake).absolute())
    place = _place(settings)
    place.check()
    spark = _session(arguments.master)
    try:
        done = archive(spark, place, ACCOUNT, arguments.queue, lake, RandomIdentities(), tell)
    finally:
        spark.stop()
    if arguments.json:
        print_json(done.as_json())
    else:
        marks = ", ".join(f"lane {lane}: {bucket}" for lane, bucket in done.marks.items()) or "none"
        print(f"{done.messages:,} messages in {done.files:,} files went to {done.lake}; archive mark {marks}")
    return DONE


def _place(settings: Settings) -> Place:
    from angelhair.spark.place import Place

    if not settings.on_cassandra:
        return Place(path=str(database_path(settings).absolute()))
    return Place(
        None, settings.contact_points, settings.store_port, settings.keyspace, settings.data_center,
        settings.consistency_level,
    )


def _session(master: str) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("angelhair pipeline").master(master)
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
