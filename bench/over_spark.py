"""Spark on the embedded file: our source, archive and sink beside Spark's JDBC, and a micro-batch beside an empty one.

`python -m bench.over_spark --short` is a trial.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.identities import RandomIdentities
from angelhair.settings import ACCOUNT, DATABASE_NAME
from angelhair.spark.pipelines.archive import MOST_BUCKETS_A_FILE, archive
from angelhair.spark.place import Place
from angelhair.stores.sqlite import open_store
from bench import jdbc, micro_batches
from bench.filling import BODY_BYTES, SETTINGS, Filling
from bench.jars import fetch_spark_jars
from bench.keeping import Progress
from bench.over_http import check_file
from bench.sheet import Bar, Section, table
from bench.spark_sources import NOTHING, TUPLES, NothingSource, TupleSource
from bench.sparks import MASTER, as_bodies, session
from bench.timed import Side, Timed, one_round

MESSAGES = 2_000_000
ROUNDS = 5

SHORT_MESSAGES = 50_000
SHORT_ROUNDS = 1

SCAN_SHARE = 0.65
"""Of the rate of Spark's JDBC source on the same file, at least."""

TUPLES_MULTIPLE = 4.0
ARCHIVE_MULTIPLE = 1.5
LOAD_MULTIPLE = 1.4
"""Of the other side's rate, at least."""

MICRO_BATCH_MULTIPLE = 2.0
"""Of the time of an empty one, at most."""

MICRO_BATCH_ROWS = 1_000
MICRO_BATCHES = 25
SHORT_MICRO_BATCHES = 5

SCAN, SCAN_TWO, SCAN_TUPLES = "scan, all columns", "scan, columns=number,body", "scan, all columns, as tuples"
JDBC_SCAN, JDBC_SCAN_TWO = "JDBC, all stored columns, bodies and states joined", "JDBC, number and body"
ARCHIVE, JDBC_ARCHIVE = "archive to Delta, zstd, read back", "JDBC to Spark's Parquet, zstd"
JDBC_ARCHIVE_USUAL = "JDBC to Spark's Parquet, snappy"
LOAD, JDBC_LOAD = "bulk load from Parquet", "JDBC writer from Parquet"
BATCH, EMPTY_BATCH = f"{MICRO_BATCH_ROWS:,} rows of our stream", "no row of a Python stream"
RATE_BATCH = "1 row of Spark's rate stream"


@dataclass
class World:
    """A queue whose messages are all acked, on a file; and a Parquet table with as many rows to load."""

    spark: SparkSession
    folder: Path
    messages: int
    queue: str = ""
    incarnation: str = ""
    made: int = 0
    """Folders, so that each has a name of its own."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def table(self) -> str:
        return str(self.folder / "rows")

    @property
    def runs(self) -> list[range]:
        """Buckets of one file of the archive, which are also those of one task of a scan."""
        buckets = self.messages // SETTINGS.bucket_size
        return [range(at, min(buckets, at + MOST_BUCKETS_A_FILE)) for at in range(0, buckets, MOST_BUCKETS_A_FILE)]

    def fill(self, tell: Callable[[str], None]) -> None:
        async def filled() -> None:
            filling = Filling(await open_store(self.data / DATABASE_NAME))
            self.queue = await filling.create()
            await filling.put(self.queue, self.messages, lambda done: tell(f"{done:,} messages put"))
            await filling.ack(self.queue, self.messages, lambda done: tell(f"{done:,} messages acked"))
            await filling.finish(self.queue)
            self.incarnation = (await filling.engine.find_queue(ACCOUNT, self.queue)).incarnation
            await filling.store.close()

        self.data.mkdir()
        check_file(self.data)
        asyncio.run(filled())
        tell("the table to load")
        as_bodies(self.ours("number,body"), self.incarnation, SETTINGS.bucket_size).write.parquet(self.table)

    def fresh(self) -> Path:
        self.made += 1
        made = self.folder / f"made{self.made}"
        made.mkdir()
        return made

    def ours(self, columns: str = "", source: str = "angelhair") -> DataFrame:
        options = {"data": str(self.data), "queue": self.queue} | ({"columns": columns} if columns else {})
        return self.spark.read.format(source).options(**options).load()

    def theirs(self, all_columns: bool) -> DataFrame:
        return jdbc.messages(self.spark, self.data, self.incarnation, self.runs, all_columns)

    # --- what is timed ------------------------------------------------------------------------------------------------

    def scanned(self, rows: DataFrame) -> int:
        rows.write.format("noop").mode("overwrite").save()
        return self.messages

    def archived(self) -> int:
        lake = self.fresh()
        place = Place(path=str(self.data / DATABASE_NAME))
        done = archive(self.spark, place, ACCOUNT, self.queue, str(lake), RandomIdentities())
        shutil.rmtree(lake)
        return done.messages

    def to_parquet(self, codec: str) -> int:
        lake = self.fresh()
        self.theirs(all_columns=True).write.option("compression", codec).mode("overwrite").parquet(str(lake))
        shutil.rmtree(lake)
        return self.messages

    def loader(self) -> tuple[Side, Side, Callable[[], None]]:
        """Ours, JDBC's, and what has to be done when both are over: each has a new file of its own."""
        folders = [self.fresh(), self.fresh()]

        async def made() -> str:
            for folder in folders:
                await (await open_store(folder / DATABASE_NAME)).close()
            store = await open_store(folders[0] / DATABASE_NAME)
            queue = await Filling(store).create()
            await store.close()
            return queue

        queue = asyncio.run(made())
        jdbc.check(self.spark, folders[1])

        def ours() -> int:
            rows = self.spark.read.parquet(self.table).select("body")
            rows.write.format("angelhair").mode("append").options(data=str(folders[0]), queue=queue).save()
            return self.messages

        def theirs() -> int:
            jdbc.append(self.spark.read.parquet(self.table), folders[1])
            return self.messages

        def over() -> None:
            for folder in folders:
                shutil.rmtree(folder)

        return ours, theirs, over


def measure(messages: int, rounds: int, batches: int) -> tuple[Timed, Timed]:
    """Rows a second; and the milliseconds of a micro-batch."""
    rates, times = Timed(), Timed()
    progress = Progress("spark")
    with tempfile.TemporaryDirectory() as folder, session(fetch_spark_jars()) as spark:
        spark.dataSource.register(TupleSource)
        spark.dataSource.register(NothingSource)
        world = World(spark, Path(folder), messages)
        world.fill(progress)
        check_counts(world)
        # The first round is not kept: a Java program that has just started is slow.
        for number in range(rounds + 1):
            _round(world, number, None if number == 0 else rates, progress)
            if number:
                _micro_batches(world, batches, times)
            progress.end(f"round {number} of {rounds}" if number else "warm")
    return rates, times


def check_counts(world: World) -> None:
    """Both sides must read the same: a rate of something else would say nothing."""
    found = [
        tuple(rows.agg(f.count("*"), f.sum("number"), f.sum(f.crc32("body"))).collect()[0])
        for rows in (world.ours(), world.theirs(all_columns=True))
    ]
    if found[0] != found[1] or found[0][0] != world.messages:
        raise RuntimeError(f"{world.messages} messages are {found[0]} for us and {found[1]} for JDBC")


def _round(world: World, number: int, rates: Timed | None, progress: Progress) -> None:
    ours, theirs, over = world.loader()
    parts: Mapping[str, Mapping[str, Side]] = {
        "scan": {
            JDBC_SCAN: lambda: world.scanned(world.theirs(all_columns=True)),
            SCAN: lambda: world.scanned(world.ours()),
            **({SCAN_TUPLES: lambda: world.scanned(world.ours(source=TUPLES))} if rates is not None else {}),
            JDBC_SCAN_TWO: lambda: world.scanned(world.theirs(all_columns=False)),
            SCAN_TWO: lambda: world.scanned(world.ours("number,body")),
        },
        "archive": {
            JDBC_ARCHIVE: lambda: world.to_parquet("zstd"),
            ARCHIVE: world.archived,
            JDBC_ARCHIVE_USUAL: lambda: world.to_parquet("snappy"),
        },
        "load": {JDBC_LOAD: theirs, LOAD: ours},
    }
    for part, sides in parts.items():
        progress(f"round {number}, {part}")
        one_round(sides, number, rates)
    over()


def _micro_batches(world: World, batches: int, times: Timed) -> None:
    """The same number of tasks in all: a thousand messages are one bucket."""
    options = {"data": str(world.data), "queue": world.queue, "maxMessagesPerTrigger": str(MICRO_BATCH_ROWS)}

    def took(rows: int, source: str, **options: str) -> float:
        stream = world.spark.readStream.format(source).options(**options).load()
        return micro_batches.milliseconds(stream, rows, batches)

    times.add(EMPTY_BATCH, took(0, NOTHING))
    times.add(BATCH, took(MICRO_BATCH_ROWS, "angelhair", **options))
    times.add(RATE_BATCH, took(1, "rate-micro-batch", rowsPerBatch="1", numPartitions="1"))


def spark_section(short: bool) -> Section:
    messages, rounds, batches = (
        (SHORT_MESSAGES, SHORT_ROUNDS, SHORT_MICRO_BATCHES) if short else (MESSAGES, ROUNDS, MICRO_BATCHES)
    )
    rates, times = measure(messages, rounds, batches)
    lines = [
        f"{messages:,} messages of {BODY_BYTES} bytes, all acked, in buckets of {SETTINGS.bucket_size:,}; Spark on "
        f"{MASTER}. "
        "Scans go to a sink that does nothing. Spark's JDBC source reads the same file with as many partitions, "
        "each the same buckets, and makes nothing of what is stored: no id, no state, no times. Both were seen to "
        "read the same messages. The JDBC writer appends the rows that ours makes to a table laid out as ours for "
        "bodies, with one task, as SQLite has one writer, and in one transaction; ours commits every block, with "
        "its ledger. Both with the write-ahead log and synchronous=FULL, read back. Sides take turns; medians of "
        "rounds, and of a ratio the median of what each round says.",
        "",
        *table(("", "thousand rows/s", "rounds"), rates.rows(1_000)),
        "",
        f"A micro-batch from its trigger to its end, by Spark's count, one after the other to a sink that does "
        f"nothing; the median of {batches} in each round. The empty one is that of a source in Python whose offsets "
        "move and whose one task yields nothing.",
        "",
        *table(("", "ms", "rounds"), times.rows()),
    ]
    bars = [
        Bar("Spark, SQLite: scan / JDBC", rates.ratio(SCAN, JDBC_SCAN), SCAN_SHARE),
        Bar("Spark, SQLite: scan / the same as tuples", rates.ratio(SCAN, SCAN_TUPLES), TUPLES_MULTIPLE),
        Bar("Spark, SQLite: archive / JDBC to Parquet", rates.ratio(ARCHIVE, JDBC_ARCHIVE), ARCHIVE_MULTIPLE),
        Bar("Spark, SQLite: bulk load / JDBC writer", rates.ratio(LOAD, JDBC_LOAD), LOAD_MULTIPLE),
        Bar(
            f"Spark: micro-batch of {MICRO_BATCH_ROWS:,} rows / an empty one", times.ratio(BATCH, EMPTY_BATCH),
            MICRO_BATCH_MULTIPLE, at_most=True,
        ),
    ]
    return Section("Spark on the embedded file", lines, bars)


if __name__ == "__main__":
    section = spark_section("--short" in sys.argv)
    print("\n".join([*section.text(), *map(str, section.bars)]))
