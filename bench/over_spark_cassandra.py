"""Spark on one Cassandra node: our source and sink beside the Cassandra connector's, on tables laid out alike.

`python -m bench.over_spark_cassandra --short` is a trial.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.settings import ACCOUNT
from bench.cassandra_node import SETTINGS as NODE_SETTINGS
from bench.cassandra_node import Node, cassandra_node
from bench.filling import BODY_BYTES, SETTINGS, Filling
from bench.jars import fetch_spark_jars
from bench.keeping import Progress
from bench.sheet import Bar, Section, table
from bench.sparks import MASTER, as_bodies, session
from bench.timed import Side, Timed, one_round
from cluster.testing import connected_store, fresh_keyspace

MESSAGES = 500_000
ROUNDS = 3

SHORT_MESSAGES = 20_000
SHORT_ROUNDS = 1

SCAN_SHARE = 1.0
WRITE_SHARE = 0.9
"""Of the connector's rate, at least."""

CONNECTOR = "org.apache.spark.sql.cassandra"
VERSION = "3.5.1"

BODY_COLUMNS = "number,body,attributes,origin,enqueued_at,due_at"
"""What the table of bodies holds."""

SCAN, CONNECTOR_SCAN = "scan, the columns of bodies", f"connector {VERSION}, the table of bodies"
SCAN_ALL, CONNECTOR_ALL = "scan, all columns", f"connector {VERSION}, bodies and states joined"
WRITE, CONNECTOR_WRITE = "write", f"connector {VERSION}, write"


@dataclass
class World:
    """A queue on Cassandra whose messages nobody has received, and a Parquet table with as many rows to write. The
    queue has its keyspace for itself: the connector reads whole tables."""

    spark: SparkSession
    node: Node
    table: str
    messages: int
    queue: str = ""

    def fill(self, tell: Callable[[str], None]) -> None:
        async def filled() -> str:
            store = await connected_store(self.node.cluster, self.node.keyspace)
            filling = Filling(store)
            self.queue = await filling.create()
            await filling.put(self.queue, self.messages, lambda done: tell(f"{done:,} messages put"))
            incarnation = (await filling.engine.find_queue(ACCOUNT, self.queue)).incarnation
            await store.close()
            return incarnation

        rows = as_bodies(self.ours("number,body"), asyncio.run(filled()), SETTINGS.bucket_size)
        rows.write.parquet(self.table)

    def options(self, keyspace: str, queue: str) -> dict[str, str]:
        return {"contactPoints": ",".join(self.node.contact_points), "keyspace": keyspace, "queue": queue}

    def ours(self, columns: str = "") -> DataFrame:
        options = self.options(self.node.keyspace, self.queue) | ({"columns": columns} if columns else {})
        return self.spark.read.format("angelhair").options(**options).load()

    def theirs(self, name: str) -> DataFrame:
        return self.spark.read.format(CONNECTOR).options(keyspace=self.node.keyspace, table=name).load()

    def joined(self) -> DataFrame:
        states = self.theirs("states").withColumnRenamed("body", "changed_body")
        return self.theirs("bodies").join(states, ["partition", "key"], "left")

    def scanned(self, rows: DataFrame) -> int:
        rows.write.format("noop").mode("overwrite").save()
        return self.messages

    def writer(self) -> tuple[Side, Side]:
        """Each into a keyspace of its own, with the same tables."""

        async def made() -> tuple[str, str, str]:
            own, other = await fresh_keyspace(self.node.cluster), await fresh_keyspace(self.node.cluster)
            store = await connected_store(self.node.cluster, own)
            queue = await Filling(store).create()
            await store.close()
            return own, other, queue

        own, other, queue = asyncio.run(made())
        rows = self.spark.read.parquet(self.table)

        def ours() -> int:
            rows.select("body").write.format("angelhair").mode("append").options(**self.options(own, queue)).save()
            return self.messages

        def theirs() -> int:
            rows.write.format(CONNECTOR).mode("append").options(keyspace=other, table="bodies").save()
            return self.messages

        return ours, theirs


def measure(messages: int, rounds: int) -> Timed:
    rates = Timed()
    progress = Progress("spark-cassandra")
    progress("a node starts")
    with tempfile.TemporaryDirectory() as folder, cassandra_node() as node:
        where = {"spark__cassandra__connection__host": node.contact_points[0]}
        with session(fetch_spark_jars(), **where) as spark:
            world = World(spark, node, str(Path(folder) / "rows"), messages)
            world.fill(progress)
            check_counts(world)
            # The first round is not kept: a Java program that has just started is slow.
            for number in range(rounds + 1):
                _round(world, number, None if number == 0 else rates, progress)
                progress.end(f"round {number} of {rounds}" if number else "warm")
    return rates


def check_counts(world: World) -> None:
    """Both sides must read the same: a rate of something else would say nothing."""
    found = [
        tuple(rows.agg(f.count("*"), f.sum(key), f.sum(f.crc32("body"))).collect()[0])
        for rows, key in ((world.ours(), "number"), (world.theirs("bodies"), "key"))
    ]
    if found[0] != found[1] or found[0][0] != world.messages:
        raise RuntimeError(f"{world.messages} messages are {found[0]} for us and {found[1]} for the connector")


def _round(world: World, number: int, rates: Timed | None, progress: Progress) -> None:
    ours, theirs = world.writer()
    scans: dict[str, Side] = {
        CONNECTOR_SCAN: lambda: world.scanned(world.theirs("bodies")),
        SCAN: lambda: world.scanned(world.ours(BODY_COLUMNS)),
        CONNECTOR_ALL: lambda: world.scanned(world.joined()),
        SCAN_ALL: lambda: world.scanned(world.ours()),
    }
    progress(f"round {number}, scan")
    one_round(scans, number, rates)
    progress(f"round {number}, write")
    one_round({CONNECTOR_WRITE: theirs, WRITE: ours}, number, rates)


def spark_cassandra_section(short: bool) -> Section:
    messages, rounds = (SHORT_MESSAGES, SHORT_ROUNDS) if short else (MESSAGES, ROUNDS)
    rates = measure(messages, rounds)
    lines = [
        f"{messages:,} messages of {BODY_BYTES} bytes that nobody has received, in buckets of "
        f"{SETTINGS.bucket_size:,}; Spark on {MASTER}; {NODE_SETTINGS}. The connector, with its own settings, reads "
        "the table that holds the bodies, and writes one that is laid out alike; ours reads the same columns of the "
        "same rows, and on writing reserves ids, keeps its ledger and confirms. Beside it, for information: all "
        "columns, for which ours reads the states too and the connector joins both tables (here nobody has a state). "
        "Scans go to a sink that does nothing; both were seen to read the same messages. Sides take turns; medians.",
        "",
        *table(("", "thousand rows/s", "rounds"), rates.rows(1_000)),
    ]
    bars = [
        Bar(f"Spark, Cassandra: scan / connector {VERSION}", rates.ratio(SCAN, CONNECTOR_SCAN), SCAN_SHARE),
        Bar(f"Spark, Cassandra: write / connector {VERSION}", rates.ratio(WRITE, CONNECTOR_WRITE), WRITE_SHARE),
    ]
    return Section("Spark on one Cassandra node", lines, bars)


if __name__ == "__main__":
    section = spark_cassandra_section("--short" in sys.argv)
    print("\n".join([*section.text(), *map(str, section.bars)]))
