"""replay: messages of a queue's history, from its lake or still in it, go to a queue once more.

A replay has a name, and what it was asked for is written down under that name beside the lake before anything is put,
with how far the queue had come. Run again under its name it reads the very same messages, in the same groups of
buckets, and the ledger of the target knows what of them is there: so it can end anywhere and be run again, and one that
is done does nothing.

    plan      what the replay is asked for, as it was written down or as it is now
    put       tasks put group after group
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.errors import InvalidRequest
from angelhair.spark.lakes import folder_of, format_at, table_place
from angelhair.spark.looking import Looking
from angelhair.spark.pipelines.archive import Step, quietly
from angelhair.spark.place import Place
from angelhair.spark.planning import FINAL, look
from angelhair.spark.writing.options import WriteOptions
from angelhair.spark.writing.sink import put_all

BUCKETS_A_GROUP = 10
"""Groups begin at multiples of it, whatever is read: the same messages are in the same group every time."""

TASKS_AT_A_RATE = 2
"""That share a rate. With fewer of them at work it is lower, never higher."""

NOTES = "_replays"


class Asked(NamedTuple):
    """What a replay is asked for."""

    queue: str
    to: str
    start: str = "earliest"
    end: str = "latest"
    where: str = ""

    @property
    def usual_name(self) -> str:
        """What asks for the same is the same replay, unless it is given another name."""
        return hashlib.blake2b(json.dumps(self).encode(), digest_size=8).hexdigest()


@dataclass
class Replayed:
    queue: str
    to: str
    name: str
    messages: int = 0
    repeated: int = 0
    """Messages that this replay had put before."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def replay(
    spark: SparkSession, place: Place, account: str, lake: str, asked: Asked, name: str | None = None,
    rate: int | None = None, step: Step = quietly,
) -> Replayed:
    name = name or asked.usual_name
    step("plan")
    ends = _noted(place, account, lake, asked, name)
    step("plan done")
    step("put")
    options = WriteOptions(place, asked.to, account, most_a_second=rate and max(1, rate // TASKS_AT_A_RATE))
    chosen = _chosen(spark, place, account, lake, asked, ends)
    groups = chosen.withColumn("run", f.expr(f"bucket div {BUCKETS_A_GROUP}"))
    if rate is not None:
        groups = groups.repartition(TASKS_AT_A_RATE, "lane", "run")

    def put_group(rows: pa.Table) -> pa.Table:
        rows = rows.sort_by("number")
        writer = f"replay/{name}/{rows.column('lane')[0]}/{rows.column('run')[0]}"
        done = put_all(options, writer, _batches(rows))
        return pa.table({"messages": [done.messages], "repeated": [done.repeated]})

    counts = groups.groupBy("lane", "run").applyInArrow(put_group, "messages long, repeated long")
    total = counts.agg(f.sum("messages").alias("messages"), f.sum("repeated").alias("repeated")).collect()[0]
    step("put done")
    return Replayed(asked.queue, asked.to, name, total.messages or 0, total.repeated or 0)


def _chosen(
    spark: SparkSession, place: Place, account: str, lake: str, asked: Asked, ends: dict[str, int]
) -> DataFrame:
    options = {
        **place.as_options(), "account": account, "queue": asked.queue, "isolation": FINAL, "start": asked.start,
        "end": json.dumps(ends),
    }
    if format_at(table_place(lake, asked.queue)) is not None:
        options["lake"] = lake
    found = spark.read.format("angelhair").options(**options).load()
    if asked.end != "latest":
        found = found.where(_before(asked.end))
    if asked.where:
        found = found.where(asked.where)
    return found.select("lane", "number", "bucket", "body", "attributes")


def _before(end: str) -> str:
    """As a filter: how far the queue had come when the replay was first run is another bound."""
    if end.startswith("{"):
        ids = " ".join(f"WHEN {int(lane)} THEN number < {int(number)}" for lane, number in json.loads(end).items())
        return f"CASE lane {ids} ELSE true END"
    return f"enqueued_at < timestamp '{end}'"


def _batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    rows = rows.select(["body", "attributes"])
    if rows.column("attributes").null_count == rows.num_rows:
        rows = rows.select(["body"])
    yield from rows.to_batches()


def _noted(place: Place, account: str, lake: str, asked: Asked, name: str) -> dict[str, int]:
    """By lane, up to which id the replay goes."""
    with Looking(place) as looking:
        shape = looking.run(lambda store: look(store, account, asked.queue))
    note = {
        "asked": list(asked),
        "incarnation": shape.incarnation,
        "ends": {str(lane.number): shape.end_of(lane, FINAL) for lane in shape.lanes},
    }
    filesystem, folder = folder_of(lake)
    path = posixpath.join(folder, NOTES, f"{name}.json")
    if filesystem.get_file_info(path).type == fs.FileType.NotFound:
        filesystem.create_dir(posixpath.dirname(path), recursive=True)
        with filesystem.open_output_stream(path) as stream:
            stream.write(json.dumps(note).encode())
    with filesystem.open_input_stream(path) as stream:
        written = json.loads(stream.read())
    if (written["asked"], written["incarnation"]) != (note["asked"], note["incarnation"]):
        raise InvalidRequest("name", f"{name!r} is another replay's, of other messages: {written['asked']}")
    ends: dict[str, int] = written["ends"]
    return ends
