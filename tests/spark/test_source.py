"""A queue as a table: every message, what became of it, and nothing taken away."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from angelhair.errors import StoreRefused
from angelhair.model import NewMessage, WantedChange
from angelhair.settings import ACCOUNT
from angelhair.spark.columns import COLUMNS
from angelhair.spark.source import QueueReader
from tests.spark.live import QUICK, Live, numbers, numbers_read, on_file, read_options, table

SHORTEST_RETENTION_MS = 1_000


def rows(frame: DataFrame) -> list[Row]:
    return frame.orderBy("lane", "number").collect()


def test_every_message_is_there_with_what_became_of_it(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10, visibility_timeout_ms=3_600_000)
    before = datetime.now(UTC)
    live.put(queue, [NewMessage(b"%d" % number, attributes=json.dumps({"n": number})) for number in range(25)])
    live.put(queue, [NewMessage(b"later", delay_ms=600_000)])
    taken = live.receive(queue, 8)
    live.ack(queue, taken[:5])
    changed = [WantedChange(taken[6].receipt, body=b"changed")]
    assert live.run(live.engine.change(ACCOUNT, queue, changed)) == [None]

    found = rows(table(spark, live, queue))

    assert [row.number for row in found] == list(range(26))
    assert [row.id for row in found] == [f"0-{number}" for number in range(26)]
    assert [row.bucket for row in found] == [number // 10 for number in range(26)]
    states = ["acked"] * 5 + ["in flight"] * 3 + ["waiting"] * 17 + ["delayed"]
    assert [row.state for row in found] == states
    assert [row.deliveries for row in found] == [1] * 8 + [0] * 18
    bodies = [b"%d" % number for number in range(25)] + [b"later"]
    bodies[6] = b"changed"
    assert [bytes(row.body) for row in found] == bodies
    assert [row.attributes for row in found] == [json.dumps({"n": number}) for number in range(25)] + [None]
    for row in found[:8]:
        enqueued, delivered = row.enqueued_at.replace(tzinfo=UTC), row.first_delivered_at.replace(tzinfo=UTC)
        assert before.replace(microsecond=0) <= enqueued <= delivered <= datetime.now(UTC)
        assert (row.settled_at is not None) == (row.state == "acked")
    assert (found[25].due_at - found[25].enqueued_at).total_seconds() == 600
    # Nothing was taken away: the next message in line is the one that would have been.
    assert [delivery.id.number for delivery in live.receive(queue, 1)] == [8]


def test_r11_messages_of_every_priority_and_of_a_flood_are_there(spark: SparkSession, live: Live) -> None:
    """They lie in lanes of their own, which are a part of every id."""
    queue = live.create(bucket_size=10, priorities=2)
    put = live.put(queue, [NewMessage(b"%d" % number, priority=number % 2) for number in range(10)])
    put += live.put(queue, [NewMessage(b"flood", group="flood")] * 50)
    assert len({message.lane for message in put}) == 3
    found = rows(table(spark, live, queue))
    assert [row.id for row in found] == [str(message) for message in sorted(put)]
    assert sorted(bytes(row.body) for row in found) == sorted([b"%d" % n for n in range(10)] + [b"flood"] * 50)


def test_dead_letters_purged_and_expired_are_told_apart(spark: SparkSession, live: Live) -> None:
    graveyard = live.create(bucket_size=10)
    queue = live.create(bucket_size=10, max_deliveries=1, dead_letter_queue=graveyard)
    live.put(queue, [NewMessage(b"poison")])
    live.receive(queue, 1, 0)
    deadline = time.monotonic() + 30
    while not rows(table(spark, live, graveyard)) and time.monotonic() < deadline:
        live.receive(queue, 1, 0)
        live.run(live.engine.step(ACCOUNT, queue))
    (dead,) = rows(table(spark, live, queue))
    assert dead.state == "dead"
    assert graveyard in dead.moved_to
    (buried,) = rows(table(spark, live, graveyard))
    assert (buried.state, bytes(buried.body)) == ("waiting", b"poison")
    assert queue in buried.origin

    passing = live.create(retention_ms=SHORTEST_RETENTION_MS)
    live.put(passing, [NewMessage(b"old")])
    time.sleep(SHORTEST_RETENTION_MS / 1000 + 0.1)
    assert [row.state for row in rows(table(spark, live, passing))] == ["expired"]

    live.put(graveyard, [NewMessage(b"more")])
    live.run(live.engine.purge(ACCOUNT, graveyard))
    live.put(graveyard, [NewMessage(b"after")])
    assert [row.state for row in rows(table(spark, live, graveyard))] == ["purged", "purged", "waiting"]


def test_isolation_says_how_much_is_settled(spark: SparkSession, live: Live) -> None:
    queue = live.create(**QUICK)
    live.put(queue, [NewMessage(b"x")] * 45)
    live.drain(queue, 25)
    live.work_until(queue, "repair", 2)
    assert numbers(table(spark, live, queue, isolation="finished")) == list(range(20))
    assert numbers(table(spark, live, queue)) == list(range(45))
    live.drain(queue, 15)
    live.work_until(queue, "settled", 4)
    assert numbers(table(spark, live, queue, isolation="final")) == list(range(40))


def test_lanes_are_read_each_by_its_own_numbers(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10, lanes=3)
    ids = {str(message_id) for _ in range(12) for message_id in live.put(queue, [NewMessage(b"x")] * 2)}
    found = rows(table(spark, live, queue))
    assert {row.id for row in found} == ids
    assert {row.lane for row in found} == {0, 1, 2}


def test_only_the_columns_that_are_asked_for(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"a"), NewMessage(b"b")])
    assert table(spark, live, queue).columns == list(COLUMNS)
    by_option = table(spark, live, queue, columns="state, number")
    assert (by_option.columns, [tuple(row) for row in by_option.collect()]) == (
        ["state", "number"], [("waiting", 0), ("waiting", 1)]
    )
    by_schema = (
        spark.read.format("angelhair").schema("number bigint, enqueued_at timestamp")
        .options(**live.options, queue=queue).load()
    )
    assert by_schema.columns == ["number", "enqueued_at"]
    assert numbers(by_schema) == [0, 1]


def test_bodies_as_text_if_they_are_text(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage("grüße".encode())])
    assert [row.body for row in rows(table(spark, live, queue, payload="string"))] == ["grüße"]
    live.put(queue, [NewMessage(b"\xff\xfe")])
    with pytest.raises(PySparkException, match="payload: a body is not UTF-8"):
        rows(table(spark, live, queue, payload="string"))
    assert bytes(rows(table(spark, live, queue))[1].body) == b"\xff\xfe"


def test_bodies_as_variants_if_they_are_json(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    bodies = [b'{"sku": "a", "count": 3, "tags": ["x", 1.5]}', b"[1, 2]", b'"text"', b"null", b"12345678901234567890"]
    broken = [b"no json", b"", b"\xff", b"NaN", b"[1,]", b"[" * 5_000]
    live.put(queue, [NewMessage(body) for body in bodies + broken])
    frame = table(spark, live, queue, payload="variant").selectExpr("number", "body", "to_json(body) as text")
    assert frame.schema["body"].dataType.simpleString() == "variant"
    found = frame.orderBy("number").collect()
    assert [row.body is None for row in found] == [False] * len(bodies) + [True] * len(broken)
    assert [json.loads(row.text) for row in found[: len(bodies)]] == [json.loads(body) for body in bodies]
    assert found[0].body.toPython() == {"sku": "a", "count": 3, "tags": ["x", 1.5]}
    # As Spark itself would parse them.
    parsed = table(spark, live, queue, payload="string", end=json.dumps({"0": len(bodies)}))
    by_spark = parsed.selectExpr("to_json(try_parse_json(body)) as text").collect()
    assert [row.text for row in by_spark] == [row.text for row in found[: len(bodies)]]
    counts = table(spark, live, queue, payload="variant").selectExpr("try_variant_get(body, '$.count', 'int') as count")
    assert [row["count"] for row in counts.where("count is not null").collect()] == [3]


def test_attributes_can_be_left_out(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"a", attributes='{"n":1}')])
    without = table(spark, live, queue, includeAttributes="false")
    assert without.columns == [name for name in COLUMNS if name != "attributes"]
    assert numbers(without) == [0]
    asked = table(spark, live, queue, includeAttributes="false", columns="number,attributes,kept_in")
    assert [tuple(row) for row in asked.collect()] == [(0, '{"n":1}', "queue")]


def test_a_column_that_begins_with_nothing(spark: SparkSession, live: Live) -> None:
    """The driver behind it takes a column's type from the first rows; of nothing but nulls it would make numbers."""
    queue = live.create(bucket_size=1_000)
    live.put(queue, [NewMessage(b"")] * 17_000 + [NewMessage(b"z", attributes='{"last":1}')])
    last = rows(table(spark, live, queue, minPartitions=1, maxBucketsPerPartition=100).where("number = 17000"))
    assert [(bytes(row.body), row.attributes) for row in last] == [(b"z", '{"last":1}')]


def test_whole_buckets_in_as_many_partitions_as_asked_for(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"x")] * 95)
    runs = [partition.run for partition in QueueReader(read_options(live, queue, minPartitions="4")).partitions()]  # type: ignore[attr-defined]
    assert len(runs) >= 4
    assert all(run.first % 10 == 0 for run in runs)
    assert [run.first for run in runs[1:]] == [run.end for run in runs[:-1]]
    assert len(QueueReader(read_options(live, queue, maxBucketsPerPartition="1")).partitions()) == 10
    assert table(spark, live, queue).rdd.getNumPartitions() == 2


def test_a_read_begins_and_ends_where_it_is_told(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"early")] * 25)
    time.sleep(0.1)
    middle = datetime.now(UTC).isoformat()
    time.sleep(0.1)
    live.put(queue, [NewMessage(b"late")] * 25)
    assert numbers(table(spark, live, queue, start='{"0": 7}', end='{"0": 33}')) == list(range(7, 33))
    assert numbers(table(spark, live, queue, start=middle)) == list(range(25, 50))
    assert numbers(table(spark, live, queue, end=middle, columns="number")) == list(range(25))
    assert numbers(table(spark, live, queue, start="2199-01-01")) == []
    assert numbers(table(spark, live, queue, start="latest")) == []
    with pytest.raises(PySparkException, match="maxMessagesPerTrigger: is for a stream"):
        table(spark, live, queue, maxMessagesPerTrigger=1).count()


def test_an_empty_queue_is_an_empty_table(spark: SparkSession, live: Live) -> None:
    assert table(spark, live, live.create()).count() == 0


def test_two_copies_of_sqlite_do_not_meet_in_one_process(tmp_path: Path) -> None:
    with on_file(tmp_path) as live:
        queue = live.create(bucket_size=10)
        live.put(queue, [NewMessage(b"x")])
        reader = QueueReader(read_options(live, queue))
        with pytest.raises(StoreRefused, match="another SQLite"):
            numbers_read(reader, reader.partitions()[0])


def test_a_file_that_is_not_there_is_not_made(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=r"there is no .*angelhair\.db"):
        spark.read.format("angelhair").options(data=str(tmp_path), queue="q").load().count()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"queue": ""}, "queue: is missing"),
        ({"queue": "nobody-has-made-it"}, "nobody-has-made-it"),
        ({"isolation": "loose"}, "isolation: 'loose' is none of committed, final, finished"),
        ({"columns": "number,colour"}, "columns: 'colour' is no column of a queue"),
        ({"payload": "xml"}, "payload: 'xml' is none of binary, string, variant"),
        ({"minPartitions": "-1"}, "minPartitions: must be a whole number above 0"),
        ({"startingPoint": "1"}, "startingpoint: is no option of a read"),
        ({"data": "x", "contactPoints": "127.0.0.1"}, "cannot both be given"),
    ],
)
def test_a_mistake_is_named(spark: SparkSession, live: Live, given: dict[str, str], said: str) -> None:
    with pytest.raises(PySparkException, match=said):
        table(spark, live, **{"queue": live.create(), **given}).count()


def test_a_schema_that_is_not_the_queues(spark: SparkSession, live: Live) -> None:
    reader = spark.read.format("angelhair").options(**live.options, queue=live.create())
    with pytest.raises(PySparkException, match="number is bigint, not string"):
        reader.schema("number string").load().count()
