"""audit: every id has a word, and what was done to a queue or its lake behind their backs is found and named."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.testing import assertDataFrameEqual

from angelhair.engine import places
from angelhair.engine.store import Applied, Change, RowChange, Span, Write
from angelhair.model import NewMessage, QueueSettings
from angelhair.settings import ACCOUNT
from angelhair.spark.pipelines.archive import archive, quietly
from angelhair.spark.pipelines.audit import Audited, audit, evidence
from angelhair.spark.pipelines.audit.accounting import LINES_DDL, LaneFacts, Short, account_piece
from angelhair.spark.pipelines.audit.evidence import PIECE_IDS
from angelhair.spark.pipelines.audit.lines import joined, said
from angelhair.spark.pipelines.audit.words import FINDINGS
from angelhair.spark.place import Place
from tests.queues import Identities
from tests.spark.live import QUICK, Live

BUCKET = QUICK["bucket_size"]


def place_of(live: Live) -> Place:
    return Place.of({name.lower(): value for name, value in live.options.items()})


def audited(spark: SparkSession, live: Live, queue: str, lake: Path, out: str | None = None) -> Audited:
    return audit(spark, place_of(live), ACCOUNT, queue, str(lake), quietly, out)


def words(report: Audited, lane: int = 0) -> dict[str, list[str]]:
    return {line.word: line.ranges for line in report.account if line.lane == lane}


def findings(report: Audited) -> dict[str, list[str]]:
    return {line.word: line.ranges for line in report.findings}


def filled(live: Live, messages: int, queue: str) -> None:
    """So many more messages, acked, in finished buckets."""
    before = live.run(live.engine.marks(ACCOUNT, queue))[0].next_id
    live.put(queue, [NewMessage(b"body %d" % (before + number)) for number in range(messages)])
    live.drain(queue, messages)
    live.work_until(queue, "repair", (before + messages) // BUCKET)


def archived(spark: SparkSession, live: Live, queue: str, lake: Path) -> None:
    archive(spark, place_of(live), ACCOUNT, queue, str(lake), Identities())


def incarnation(live: Live, queue: str) -> str:
    (found,) = live.run(live.store.read([Span(places.account_queues(ACCOUNT), queue, queue)]))
    return str(found.rows[0].values["incarnation"])


def lake_file(lake: Path, queue: str, number: int) -> Path:
    for uri in DeltaTable(str(lake / queue)).file_uris():
        if number in pq.read_table(uri, columns=["number"], partitioning=None).column("number").to_pylist():
            return Path(uri)
    raise AssertionError(f"{number} is in no file")


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """The file with other rows in it, behind the table's back."""
    pq.write_table(change(pq.read_table(path, partitioning=None)), path)


# --- a queue with everything in it ------------------------------------------------------------------------------------


def test_a_clean_queue_with_every_state_has_no_findings(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    graveyard = live.create(bucket_size=BUCKET)
    settings = {**QUICK, "archive": True, "history_ms": 0, "max_deliveries": 2, "dead_letter_queue": graveyard}
    queue = live.create(**settings, retention_ms=None)
    filled(live, 40, queue)
    archived(spark, live, queue, tmp_path)
    live.work_until(queue, "dropped", 4)

    live.put(queue, [NewMessage(b"purged")] * 10)
    live.run(live.engine.purge(ACCOUNT, queue))
    live.put(queue, [NewMessage(b"poison")])
    deadline = time.monotonic() + 30
    while not _dead(live, queue, 50) and time.monotonic() < deadline:
        live.receive(queue, 1, 0)
        live.run(live.engine.step(ACCOUNT, queue))
    # Ids that were taken and never written, as by a server that died in between.
    _skip_ids(live, queue, 3)
    live.put(queue, [NewMessage(b"later", delay_ms=600_000)])
    live.put(queue, [NewMessage(b"x")] * 10)
    live.ack(queue, live.receive(queue, 10, 3_600_000)[:4])
    live.work_until(queue, "settled", 6)
    live.put(queue, [NewMessage(b"x")] * 15)
    _skip_ids(live, queue, 2)

    report = audited(spark, live, queue, tmp_path, str(tmp_path / "out"))

    assert report.clean, (report.findings, report.files)
    assert words(report) == {
        "acked": ["0-0..0-39", "0-55..0-58"],
        "purged": ["0-40..0-49"],
        "dead": ["0-50"],
        "void": ["0-51..0-53"],
        "delayed": ["0-54"],
        "in flight": ["0-59..0-64"],
        "waiting": ["0-65..0-79"],
        "unwritten": ["0-80..0-81"],
    }
    facts = {line.word: line.ranges for line in report.facts}
    assert facts == {
        "in the lake": ["0-0..0-39"], "in the queue": ["0-40..0-50", "0-54..0-79"],
        "delivered": ["0-0..0-39", "0-50", "0-55..0-64"],
    }
    told = report.as_json()
    assert (told["ids"], told["lanes"][0]["account"]["acked"], told["findings"]) == (82, 44, [])
    assert json.loads(json.dumps(told)) == told
    lines = spark.read.parquet(str(tmp_path / "out")).where("kind = 'account'")
    assert lines.agg(f.sum("ids")).collect()[0][0] == 82


def _dead(live: Live, queue: str, number: int) -> bool:
    partition = places.states(incarnation(live, queue), 0, number // BUCKET)
    (found,) = live.run(live.store.read([Span(partition, number, number)]))
    return bool(found.rows) and found.rows[0].values.get("settled") == "dead"


def _skip_ids(live: Live, queue: str, count: int) -> None:
    sequence = places.sequence(incarnation(live, queue), 0)
    (found,) = live.run(live.store.read([Span(sequence)]))
    next_id = found.rows[0].values["next"]
    assert isinstance(next_id, int)
    row = RowChange(places.SEQUENCE_ROW, {"next": next_id}, {"next": next_id + count})
    (outcome,) = live.run(live.store.change([Change(sequence, [row])]))
    assert isinstance(outcome, Applied)


# --- damage -----------------------------------------------------------------------------------------------------------


def deleted_body(live: Live, queue: str, number: int) -> None:
    """Its body is gone from the store, as after a mistake by hand. The port deletes no body, but lets one lapse."""
    partition = places.bodies(incarnation(live, queue), 0, number // BUCKET)
    (found,) = live.run(live.store.read([Span(partition, number, number)]))
    assert live.run(live.store.write([Write(partition, found.rows, 1)])) == [None]
    deadline = time.monotonic() + 30
    while live.run(live.store.read([Span(partition, number, number)]))[0].rows:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def changed_state(live: Live, queue: str, number: int, **values: int | str | None) -> None:
    partition = places.states(incarnation(live, queue), 0, number // BUCKET)
    (outcome,) = live.run(live.store.change([Change(partition, [RowChange(number, {}, values)])]))
    assert isinstance(outcome, Applied)


def test_what_was_done_to_queue_and_lake_is_found_and_named(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    graveyard = live.create()
    queue = live.create(**QUICK, archive=True, max_deliveries=3, dead_letter_queue=graveyard)
    filled(live, 60, queue)
    archived(spark, live, queue, tmp_path)
    live.put(queue, [NewMessage(b"new")] * 12)
    live.receive(queue, 8, 3_600_000)

    deleted_body(live, queue, 61)
    deleted_body(live, queue, 42)
    changed_state(live, queue, 62, delivery=4)
    changed_state(live, queue, 33, settled=None)
    twice = DeltaTable(str(tmp_path / queue)).to_pyarrow_table(filters=[("number", "=", 21)])
    rewritten(lake_file(tmp_path, queue, 5), lambda table: pa.concat_tables([table, table.slice(5, 1)]))
    rewritten(
        lake_file(tmp_path, queue, 50), lambda table: table.filter(pc.not_equal(table.column("number"), 50))
    )
    rewritten(lake_file(tmp_path, queue, 17), lambda table: _with_body(table, 17, b"body 71"))
    write_deltalake(str(tmp_path / queue), twice, mode="append")
    beyond = twice.set_column(twice.column_names.index("number"), "number", pa.array([100], pa.int64()))
    write_deltalake(str(tmp_path / queue), beyond, mode="append")

    report = audited(spark, live, queue, tmp_path)

    assert findings(report) == {
        "lost": ["0-61"],
        "missing in the queue": ["0-42"],
        "redelivered too often": ["0-62"],
        "passed over": ["0-33"],
        "duplicated": ["0-5"],
        "missing in the lake": ["0-50"],
        "corrupted": ["0-17"],
        "archived twice": ["0-21"],
        "beyond the sequence": ["0-100"],
    }
    assert not report.clean
    problems = sorted(damage.problem for damage in report.files)
    assert problems == ["has 29 rows, and the table says 30", "has 31 rows, and the table says 30"]
    assert {found["finding"]: found["says"] for found in report.as_json()["findings"]}["lost"].startswith("it was put")


def _with_body(table: pa.Table, number: int, body: bytes) -> pa.Table:
    bodies = table.column("body").to_pylist()
    bodies[table.column("number").to_pylist().index(number)] = body
    return table.set_column(table.column_names.index("body"), "body", pa.array(bodies, pa.binary()))


def test_what_only_the_lake_had_and_has_no_more_is_lost(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, archive=True, history_ms=0)
    filled(live, 60, queue)
    # Files of one bucket each.
    archive(spark, place_of(live), ACCOUNT, queue, str(tmp_path), Identities(), most_buckets_a_commit=2)
    live.work_until(queue, "dropped", 6)
    filled(live, 5, queue)

    missing, short, broken = (lake_file(tmp_path, queue, number) for number in (45, 7, 25))
    missing.unlink()
    rewritten(short, lambda table: table.filter(pc.not_equal(table.column("number"), 7)))
    damaged = bytearray(broken.read_bytes())
    # In the midst of the pages: what the file says of itself is at its end, and stays whole.
    damaged[4 : len(damaged) // 3] = bytes(len(damaged) // 3 - 4)
    broken.write_bytes(damaged)

    report = audited(spark, live, queue, tmp_path)

    lost = words(report)["lost"]
    assert lost == ["0-7", "0-20..0-29", "0-40..0-49"]
    assert findings(report) == {"lost": lost}
    said_of = {damage.problem.split(":")[0] for damage in report.files}
    assert said_of == {"is not there", "cannot be read", "has 9 rows, and the table says 10"}


def test_a_lake_that_is_another_has_lost_everything_that_was_dropped(
    spark: SparkSession, live: Live, tmp_path: Path
) -> None:
    queue = live.create(**QUICK, archive=True, history_ms=0)
    filled(live, 20, queue)
    archived(spark, live, queue, tmp_path / "one")
    live.work_until(queue, "dropped", 2)
    filled(live, 5, queue)
    report = audited(spark, live, queue, tmp_path / "other")
    assert findings(report) == {"lost": ["0-0..0-19"]}
    # Nothing was made there by looking.
    assert not (tmp_path / "other").exists()


def test_without_an_archive_what_is_dropped_is_not_lost(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, lanes=2, history_ms=0)
    for _ in range(4):
        live.put(queue, [NewMessage(b"x")] * BUCKET)
    live.drain(queue, 4 * BUCKET)
    for lane in (0, 1):
        live.work_until(queue, "dropped", 2, lane)
    live.put(queue, [NewMessage(b"x")])
    report = audited(spark, live, queue, tmp_path)
    assert report.clean
    dropped = [line.ranges for line in report.account if line.word == "dropped"]
    assert dropped == [["0-0..0-19"], ["1-0..1-19"]]
    assert report.ids == 41


def test_an_empty_queue_and_one_that_was_made_again(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, archive=True)
    report = audited(spark, live, queue, tmp_path)
    assert (report.clean, report.ids, report.account) == (True, 0, [])
    filled(live, 20, queue)
    archived(spark, live, queue, tmp_path)
    live.run(live.engine.delete_queue(ACCOUNT, queue))
    live.run(live.engine.create_queue(ACCOUNT, queue, QueueSettings(**QUICK, archive=True)))
    live.put(queue, [NewMessage(b"again")] * 3)
    report = audited(spark, live, queue, tmp_path)
    assert (report.clean, words(report)) == (True, {"waiting": ["0-0..0-2"]})


# --- the parts --------------------------------------------------------------------------------------------------------


def test_bitmaps_tell_pieces_apart_and_rows_that_are_there_twice(spark: SparkSession) -> None:
    rows = [
        (0, 0, "acked", 1), (0, PIECE_IDS - 1, "acked", 9), (0, PIECE_IDS, "acked", 0), (0, PIECE_IDS, "waiting", 0),
        (1, 5, "waiting", 0),
    ]
    messages = spark.createDataFrame(rows, "lane int, number bigint, state string, deliveries int").withColumn(
        "enqueued_at", f.timestamp_millis(f.lit(1_000))
    )
    pieces = evidence.pieces_of(messages, evidence.QUEUE, 3, finished=f.col("lane") == 1)
    counted = pieces.select(
        "lane", "piece", "word", "rows",
        *(f.bitmap_count(name).alias(name) for name in ("ids", "delivered", "redelivered", "passed", "damaged")),
    )
    wanted = "lane int, piece bigint, word string, rows bigint, ids bigint, delivered bigint, redelivered bigint, " \
        "passed bigint, damaged bigint"
    assertDataFrameEqual(
        counted,
        spark.createDataFrame(
            [
                (0, 0, "acked", 2, 2, 2, 1, 0, None), (0, 1, "acked", 1, 1, 0, 0, 0, None),
                (0, 1, "waiting", 1, 1, 0, 0, 0, None), (1, 0, "waiting", 1, 1, 0, 0, 1, None),
            ],
            wanted,
        ),
    )
    where = evidence.crowded(pieces)
    assertDataFrameEqual(
        where, spark.createDataFrame([("queue", 0, 1)], "source string, lane int, piece bigint")
    )
    doubled = evidence.doubled(messages.withColumn("file", f.lit("same")), where)
    assertDataFrameEqual(
        doubled, spark.createDataFrame([(0, PIECE_IDS, "duplicated")], "lane int, number bigint, word string")
    )
    wrong = evidence.pieces_of(messages, evidence.LAKE, damaged=f.col("number") == 5)
    assert wrong.where("lane = 1").select(f.bitmap_count("damaged")).collect() == [(1,)]
    # Settings that are younger than a message do not judge it.
    young = evidence.pieces_of(messages, evidence.QUEUE, 3, since_ms=2_000, finished=f.lit(True))
    assert young.agg(f.sum(f.bitmap_count("redelivered")), f.sum(f.bitmap_count("passed"))).collect() == [(0, 0)]


def test_runs_of_ids_are_joined_over_pieces_and_only_so_many_are_named(spark: SparkSession) -> None:
    lines = spark.createDataFrame(
        [("account", 0, "acked", 0, 9), ("account", 0, "acked", 10, 19), ("account", 0, "acked", 30, 30),
         ("account", 1, "acked", 20, 29), ("finding", 0, "lost", 20, 29)],
        LINES_DDL,
    )
    whole = joined(lines)
    assertDataFrameEqual(
        whole,
        spark.createDataFrame(
            [("account", 0, "acked", 0, 19, 20), ("account", 0, "acked", 30, 30, 1),
             ("account", 1, "acked", 20, 29, 10), ("finding", 0, "lost", 20, 29, 10)],
            f"{LINES_DDL}, ids bigint",
        ),
    )
    assert [(one.lane, one.ids, one.runs, one.ranges) for one in said(whole, named=1)] == [
        (0, 21, 2, ["0-0..0-19"]), (1, 10, 1, ["1-20..1-29"]), (0, 10, 1, ["0-20..0-29"]),
    ]


@pytest.mark.parametrize(("exact", "word"), [(True, "lost"), (False, "lost or void")])
def test_what_a_short_file_has_lost_is_known_by_name_only_if_it_was_full(exact: bool, word: str) -> None:
    lane = LaneFacts(0, 100, 100, 100, 10, 100, 100, (Short(20, 29, exact),))
    found = [(kind, line, first, last) for kind, _, line, first, last in account_piece(lane, 0, [])]
    assert found == [
        ("account", "dropped", 0, 9),
        *sorted([("account", word, 20, 29), ("account", "void", 10, 19), ("account", "void", 30, 99)]),
        ("finding", word, 20, 29),
    ]


def test_the_page_says_what_can_be_found() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    for word, says in FINDINGS.items():
        assert f"| {word} | {says[0].upper()}{says[1:]}" in page
