"""audit: accounts for every id that a queue has given out, from 0 to its sequence, across the queue and its lake.

    look      which marks the lanes have
    files     whether the lake's files are there, and as long as the table says
    states    which ids have a state row
    queue     which ids have a body in the queue, and what became of them
    lake      which ids the lake has
    bodies    whether queue and lake hold the same bodies, where both still have them
    compare   a word for every id, and what is wrong with which

A queue goes on while it is audited, so the order matters. A state row is made for a body that is there: states are read
before bodies. What is dropped meanwhile must be in the lake by then: the lake is read after the queue, and the floor in
between. What the lake says that it has, it must have: how far it is, is read before its files are. Nothing is changed
anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.spark.history import FileTold, lake_ends, lake_files, lake_table, queue_table
from angelhair.spark.lakes import table_place
from angelhair.spark.looking import Looking
from angelhair.spark.pipelines.audit import bodies, evidence
from angelhair.spark.pipelines.audit.accounting import LINES_DDL, LaneFacts, accounting
from angelhair.spark.pipelines.audit.files import Damage, damaged_files, may_be_of, short_of
from angelhair.spark.pipelines.audit.lines import joined, said
from angelhair.spark.pipelines.audit.report import Audited
from angelhair.spark.pipelines.audit.states import state_ids
from angelhair.spark.pipelines.audit.subject import Subject, survey
from angelhair.spark.pipelines.shuffling import shuffling
from angelhair.spark.place import Place

__all__ = ["STEPS", "Audited", "audit"]

STEPS = ("look", "files", "states", "queue", "lake", "bodies", "compare")

PIECES_A_PARTITION = 200
"""Of a shuffle. A piece is a few bitmaps of 4 KiB for every word that is in it."""

CHECKSUM = "checksum"
"""A column of the lake, where it has one: the CRC-32 of the body as it was archived."""

Step = Callable[[str], None]


def audit(
    spark: SparkSession, place: Place, account: str, queue: str, lake: str, step: Step, out: str | None = None
) -> Audited:
    """`out`: where the lines are written as Parquet, all of them; what comes back names the first of each word."""
    return _Audit(spark, place, account, queue, table_place(lake, queue), step).done(out)


class _Audit:
    def __init__(
        self, spark: SparkSession, place: Place, account: str, queue: str, table: str, step: Step
    ) -> None:
        self._spark, self._place, self._account, self._queue, self._table = spark, place, account, queue, table
        self._step = step
        self._kept: list[DataFrame] = []

    def done(self, out: str | None) -> Audited:
        try:
            return self._audited(out)
        finally:
            for frame in self._kept:
                frame.unpersist()

    def _audited(self, out: str | None) -> Audited:
        self._step("look")
        subject = self._survey()
        pieces = sum(lane.next_id for lane in subject.shape.lanes) // evidence.PIECE_IDS
        with shuffling(self._spark, pieces // PIECES_A_PARTITION):
            return self._compared(subject, out)

    def _compared(self, subject: Subject, out: str | None) -> Audited:
        self._step("files")
        files = lake_files(self._table)
        damages = damaged_files(self._spark, files)
        self._step("states")
        states = self._keep(
            evidence.bare_pieces(
                state_ids(self._spark, self._place, subject.shape), evidence.STATES, f.lit("")
            )
        )
        self._step("queue")
        in_queue = self._messages(subject)
        queue_pieces = self._keep(self._queue_pieces(subject, in_queue))
        floors = {lane.number: lane.floor for lane in self._survey().shape.lanes}
        self._step("lake")
        numbers = sorted({lane.number for lane in subject.shape.lanes} | {file.lane for file in files})
        ends = lake_ends(self._table, subject.shape.incarnation, numbers)
        in_lake, lake_pieces, damages = self._lake_pieces(subject, damages)
        lanes = self._lanes(subject, floors, ends, files, damages)
        tables = {evidence.QUEUE: in_queue.withColumn("file", f.lit(""))}
        if in_lake is not None:
            tables[evidence.LAKE] = in_lake.withColumn("file", f.col("_metadata.file_path"))
        found = self._doubled(tables, [pieces for pieces in (queue_pieces, lake_pieces) if pieces is not None])
        if in_lake is not None:
            self._step("bodies")
            found += self._corrupted(subject, lanes, in_lake)
        self._step("compare")
        everything = evidence.all_pieces(self._spark, [(lane.number, lane.next_id) for lane in lanes.values()])
        for pieces in (states, queue_pieces, lake_pieces, *found):
            everything = everything if pieces is None else everything.unionByName(pieces)
        accounted = everything.groupBy("lane", "piece").applyInArrow(accounting(lanes), LINES_DDL)
        lines = self._keep(joined(accounted))
        if out is not None:
            lines.coalesce(1).write.mode("overwrite").parquet(out)
        audited = Audited.of(subject, self._table, lanes, said(lines), damages)
        self._step("compare done")
        return audited

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Reads it now, once, and keeps what came of it: bitmaps, or lines."""
        kept = frame.persist()
        self._kept.append(kept)
        kept.count()
        return kept

    def _survey(self) -> Subject:
        with Looking(self._place) as looking:
            return looking.run(lambda store: survey(store, self._account, self._queue))

    # --- the queue ----------------------------------------------------------------------------------------------------

    def _messages(self, subject: Subject) -> DataFrame:
        """Up to the sequence as it was when we looked. What is dropped meanwhile is not lost: the lake has it."""
        end = {lane.number: lane.next_id for lane in subject.shape.lanes}
        columns = ("lane", "number", "state", "deliveries", "enqueued_at")
        return self._read(columns, end)

    def _read(self, columns: tuple[str, ...], end: dict[int, int]) -> DataFrame:
        ids = "{" + ",".join(f'"{lane}":{number}' for lane, number in end.items()) + "}"
        return queue_table(
            self._spark, self._place, self._account, self._queue, columns, end=ids, failOnDataLoss="false"
        )

    def _queue_pieces(self, subject: Subject, messages: DataFrame) -> DataFrame:
        shape = subject.shape
        finished = [(lane.number, lane.repair * shape.bucket_size) for lane in shape.lanes]
        marks = self._spark.createDataFrame(finished, "lane int, finished bigint")
        return evidence.pieces_of(
            messages.join(f.broadcast(marks), "lane"), evidence.QUEUE, subject.most_deliveries,
            subject.judged_since_ms, f.col("number") < f.col("finished"),
        )

    # --- the lake -----------------------------------------------------------------------------------------------------

    def _lake_pieces(
        self, subject: Subject, damages: list[Damage]
    ) -> tuple[DataFrame | None, DataFrame | None, list[Damage]]:
        """Also what else is wrong with the files, if some cannot be read though they look as if they could."""
        messages = self._archived(subject, damages)
        if messages is None:
            return None, None, damages
        try:
            return messages, self._keep(self._pieces_of_lake(subject, messages)), damages
        except Exception:
            # Which of them? Every page of every file is read to find out.
            worse = damaged_files(self._spark, lake_files(self._table), whole=True)
            if len(worse) == len(damages):
                raise
        messages = self._archived(subject, worse)
        return messages, None if messages is None else self._keep(self._pieces_of_lake(subject, messages)), worse

    def _archived(self, subject: Subject, damages: list[Damage]) -> DataFrame | None:
        unreadable = {damage.told.uri for damage in damages if damage.rows is None}
        table = lake_table(self._spark, self._table, unreadable)
        return None if table is None else table.where(f.col("incarnation") == subject.shape.incarnation)

    def _pieces_of_lake(self, subject: Subject, messages: DataFrame) -> DataFrame:
        damaged = f.crc32("body") != f.col(CHECKSUM) if CHECKSUM in messages.columns else None
        return evidence.pieces_of(
            messages, evidence.LAKE, subject.most_deliveries, subject.judged_since_ms, f.lit(True), damaged
        )

    @staticmethod
    def _lanes(
        subject: Subject, floors: dict[int, int], ends: dict[int, int], files: list[FileTold], damages: list[Damage]
    ) -> dict[int, LaneFacts]:
        """Also lanes that the queue has no more: all that is left of them is in the lake."""
        shape = subject.shape
        files = [file for file in files if may_be_of(file, shape.incarnation)]
        known = {lane.number: lane for lane in shape.lanes}
        lanes = {}
        for number in sorted(known.keys() | ends.keys()):
            told = [file.first for file in files if file.lane == number and file.first is not None]
            end = ends.get(number, 0) * shape.bucket_size
            first = min(told, default=end) // shape.bucket_size * shape.bucket_size
            short = short_of(damages, number, shape.incarnation)
            lane = known.get(number)
            if lane is not None:
                lanes[number] = subject.facts(lane, floors.get(number, lane.floor), first, end, short)
            elif end:
                lanes[number] = LaneFacts(number, end, end, end, first, end, end, short)
        return lanes

    # --- both ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def _doubled(tables: dict[str, DataFrame], pieces: list[DataFrame]) -> list[DataFrame]:
        """Only what has more rows than ids is looked at once more."""
        where = evidence.crowded(reduce(lambda one, other: one.unionByName(other), pieces))
        sources = [row.source for row in where.select("source").distinct().collect()]
        return [
            evidence.bare_pieces(
                evidence.doubled(tables[source], where.where(f.col("source") == source)),
                evidence.FOUND, f.col("word"),
            )
            for source in sources
        ]

    def _corrupted(self, subject: Subject, lanes: dict[int, LaneFacts], in_lake: DataFrame) -> list[DataFrame]:
        """Of what is in both: from the floor up to where the lake ends."""
        shape = subject.shape
        spans = [(lane.number, lanes[lane.number].floor, lanes[lane.number].lake_end) for lane in shape.lanes]
        if all(end <= first for _, first, end in spans):
            return []
        marks = self._spark.createDataFrame(spans, "lane int, first bigint, end bigint")
        columns = ("lane", "bucket", "number", "body")
        here = self._read(columns, {lane: end for lane, _, end in spans})
        there = in_lake.join(f.broadcast(marks), "lane").where("number >= first and number < end").select(*columns)
        buckets = self._keep(bodies.differing_buckets(here, there))
        if buckets.isEmpty():
            return []
        return [evidence.bare_pieces(bodies.corrupted(here, there, buckets), evidence.FOUND, f.col("word"))]
