"""A queue's tables for Spark's Declarative Pipelines: what they are is said by the functions that the jobs use.

Spark runs the declarations on a server of its own (Connect) and keeps the tables in its catalog. It reads what the
queue and its lake hold; what has to move a mark in the queue (archive, retire) stays a job, as a declared table may be
made anew at any time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angelhair.errors import InvalidRequest

if TYPE_CHECKING:
    # Only where tables are made: a spec is written without Spark.
    from pyspark.sql import DataFrame, SparkSession

SETTING = "angelhair."
"""What the names of our settings in a spec begin with."""

OURS = ("group", "fields")
"""Those that are no options of a read."""

SPEC, TABLES = "spark-pipeline.yml", "transformations/angelhair_tables.py"
"""The files of a declared pipeline."""

CODE = '''"""The tables of the queue that spark-pipeline.yml names. Add your own beside this file, in Python or SQL."""

from pyspark import pipelines
from pyspark.sql import SparkSession

from angelhair.spark.pipelines.declared import declare

declare(pipelines, SparkSession.active())
'''


def declare(pipelines: Any, spark: SparkSession) -> None:
    """`QUEUE_messages`, `_states`, `_minutes`, `_poison`, and `_tops` if values are to be counted."""
    from angelhair.spark.pipelines.insight import tables

    ours = {name: value for name, value in spark.conf.getAll.items() if name.startswith(SETTING)}
    told = {name.removeprefix(SETTING): value for name, value in ours.items()}
    if not told.get("queue"):
        raise InvalidRequest(f"{SETTING}queue", f"is missing in the configuration of {SPEC}")
    group, fields = told.get("group"), [name for name in told.get("fields", "").split(",") if name]
    name = prefix_of(told["queue"])

    def messages() -> DataFrame:
        reader = spark.read.format("angelhair")
        for option, value in told.items():
            if option not in OURS:
                reader = reader.option(option, value)
        return reader.load()

    def of_messages(made: Callable[[DataFrame], DataFrame]) -> Callable[[], DataFrame]:
        return lambda: made(spark.read.table(f"{name}_messages"))

    declared: dict[str, tuple[Callable[[], DataFrame], str]] = {
        "messages": (messages, "Every message that the queue or its lake holds."),
        "states": (of_messages(states), "How many messages there are, by lane and state."),
        "minutes": (of_messages(tables.minutes), "What came, was delivered and was settled, by minute."),
        "poison": (of_messages(tables.poisoned), "The messages that were delivered most often."),
    }
    if group or fields:
        counted = of_messages(lambda found: tables.tops(found, group, fields))
        declared["tops"] = counted, "The most frequent values of attributes and fields."
    for table, (made, comment) in declared.items():
        pipelines.materialized_view(made, name=f"{name}_{table}", comment=comment)


def states(messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return messages.groupBy("lane", "state").agg(
        f.count("*").alias("messages"), f.min("number").alias("first"), f.max("number").alias("last"),
        f.sum(f.octet_length("body")).alias("bytes"),
    )


def prefix_of(queue: str) -> str:
    """What the names of a queue's tables begin with."""
    return re.sub(r"\W", "_", queue)


def spec_of(queue: str, storage: str, told: dict[str, str]) -> str:
    """The text of a spec that declares a queue's tables. Its values are JSON's, which YAML reads as they are meant."""
    settings = "".join(f"  {SETTING}{name}: {json.dumps(value)}\n" for name, value in told.items())
    return (
        f"name: {json.dumps(f'angelhair {queue}')}\nstorage: {json.dumps(storage)}\n"
        "libraries:\n  - glob:\n      include: transformations/**\n"
        'configuration:\n  spark.sql.session.timeZone: "UTC"\n'
        f"{settings}"
    )


def write_spec(folder: Path, queue: str, told: dict[str, str]) -> list[Path]:
    """Writes what `spark-pipelines run` needs; a folder that has some of it already is refused."""
    written = {
        folder / SPEC: spec_of(queue, (folder / "storage").absolute().as_uri(), told), folder / TABLES: CODE
    }
    for path in written:
        if path.exists():
            raise InvalidRequest("into", f"{path} is there already: choose another folder, or take it away first")
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(written)
