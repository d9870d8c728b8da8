"""What every job has in common: whose queue, which lake, which Spark, and how it tells what it does."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angelhair.cli.config import add_settings_flags, complain, read_settings
from angelhair.cli.exits import FAILED, Ended
from angelhair.cli.opening import database_path
from angelhair.cli.output import on_terminal
from angelhair.cli.parsers import add_command
from angelhair.server.configuration import SettingsRefused
from angelhair.server.installing import to_install
from angelhair.settings import ACCOUNT, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from angelhair.spark.place import Place

MASTER = "local[*]"

NEEDS_JAVA = "Spark needs Java 17, as `java` on the path or in JAVA_HOME"

LOCAL_PARTITIONS = 8


@dataclass(frozen=True)
class Job:
    """What a job works with."""

    spark: SparkSession
    place: Place
    queue: str
    lake: str
    account: str = ACCOUNT

    def tell(self, step: str) -> None:
        """Which step it is at, to whoever watches at a terminal."""
        if on_terminal(sys.stderr) and not step.endswith(" done"):
            print(f"{step} …", file=sys.stderr, flush=True)


def add_job(
    verbs: Any, name: str, summary: str, description: str, examples: str, run: Callable[[argparse.Namespace], int],
    lake: bool = True, spark: bool = True, store: bool = True,
) -> argparse.ArgumentParser:
    """`run` prints what came of it, and returns the exit code; it does its work in `working`, or in `on_lake` if it
    needs no `store`. `lake`, `spark`, `store`: whether it has to do with one."""

    def checked(arguments: argparse.Namespace) -> int:
        try:
            arguments.settings = read_settings(arguments).settings
        except SettingsRefused as refused:
            return complain(f"pipeline {name}", refused)
        if spark:
            try:
                import angelhair.spark.source  # noqa: F401 - only to know whether it can be
            except ModuleNotFoundError as error:
                raise Ended(FAILED, f"{error.name} is not installed; {to_install('spark')}") from error
        return run(arguments)

    parser = add_command(verbs, name, summary, description, examples, checked)
    parser.add_argument("--queue", required=True, metavar="QUEUE", help="the queue")
    if lake:
        parser.add_argument("--lake", required=True, metavar="DIR", help="a directory, or an object store's address")
    if spark:
        parser.add_argument("--master", default=MASTER, metavar="URL", help=f"the Spark cluster (default: {MASTER})")
    parser.add_argument("--json", action="store_true", help="print JSON")
    if store:
        add_settings_flags(parser, ["embedded", "cassandra"])
    return parser


@contextmanager
def working(arguments: argparse.Namespace) -> Iterator[Job]:
    """A session for as long as the job takes. What is not there is said before one is started."""
    place = place_of(arguments)
    with _session_of(arguments) as spark:
        yield Job(spark, place, arguments.queue, lake_of(arguments))


@contextmanager
def on_lake(arguments: argparse.Namespace) -> Iterator[Job]:
    """For a job that looks at the lake alone."""
    from angelhair.spark.lakes import open_lake, table_place
    from angelhair.spark.place import Place

    open_lake(table_place(lake_of(arguments), arguments.queue))
    with _session_of(arguments) as spark:
        yield Job(spark, Place(), arguments.queue, lake_of(arguments))


def lake_of(arguments: argparse.Namespace) -> str:
    """Empty for a job that has to do with none."""
    lake: str = getattr(arguments, "lake", "")
    return lake if not lake or "://" in lake else str(Path(lake).absolute())


@contextmanager
def _session_of(arguments: argparse.Namespace) -> Iterator[SparkSession]:
    spark = _session(arguments.master)
    try:
        yield spark
    finally:
        spark.stop()


def place_of(arguments: argparse.Namespace) -> Place:
    """Where the queue is. What is not there is said."""
    from angelhair.spark.place import Place, to_environment

    settings: Settings = arguments.settings
    if settings.on_cassandra:
        to_environment(settings)
        return Place.on_cassandra(settings)
    place = Place(path=str(database_path(settings).absolute()))
    place.check()
    return place


def _session(master: str) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    from angelhair.spark import register

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("angelhair pipeline").master(master)
    if master.startswith("local"):
        # What is shuffled are counts and bitmaps: Spark's 200 parts would cost more than what is in them.
        builder = builder.config("spark.sql.shuffle.partitions", LOCAL_PARTITIONS)
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
    )
    if not _has_java():
        raise Ended(FAILED, NEEDS_JAVA)
    try:
        return register(builder.getOrCreate())
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise Ended(FAILED, f"Spark's Java ended before Spark began; {NEEDS_JAVA}") from error


def _has_java() -> bool:
    """Where Spark looks for it. Without it Spark ends in a traceback that names no Java."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(f"{home}/bin/java" if home else "java") is not None
