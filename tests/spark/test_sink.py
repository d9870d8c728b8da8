"""Rows become messages, each once, wherever a try ends."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from angelhair.errors import InvalidRequest
from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.writing.options import WRITE_OPTIONS, WriteOptions
from angelhair.spark.writing.rows import WRITTEN, Block, blocks, checked
from angelhair.spark.writing.sink import Written, put_all
from tests.spark.live import PATIENCE_SECONDS, QUICK, Live


def write(frame: DataFrame, live: Live, queue: str, **options: Any) -> None:
    named = {**live.options, "queue": queue, **{name: str(value) for name, value in options.items()}}
    frame.write.format("angelhair").mode("append").options(**named).save()


def received(live: Live, queue: str) -> Counter[bytes]:
    """All that can be received now, acked."""
    found: Counter[bytes] = Counter()
    while taken := live.receive(queue, 100):
        found.update(delivery.body for delivery in taken)
        live.ack(queue, taken)
    return found


def received_at_last(live: Live, queue: str, count: int) -> Counter[bytes]:
    """So many at least. What was written late, below where a consumer has read already, is found by repair."""
    found, end = received(live, queue), time.monotonic() + PATIENCE_SECONDS
    while found.total() < count and time.monotonic() < end:
        live.run(live.engine.step(ACCOUNT, queue))
        time.sleep(0.02)
        found += received(live, queue)
    return found


def orders(spark: SparkSession, count: int, partitions: int = 3) -> DataFrame:
    return spark.range(count).repartition(partitions).select(f.concat(f.lit("order "), "id").alias("body"))


def expected(count: int) -> dict[bytes, int]:
    return {b"order %d" % number: 1 for number in range(count)}


def test_rows_are_messages(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    write(orders(spark, 105), live, queue, blockMessages=20)
    assert received(live, queue) == expected(105)


def test_every_column_arrives(spark: SparkSession, live: Live) -> None:
    queue = live.create()
    due = datetime.now(UTC) + timedelta(hours=2)
    rows = [(b"plain", None, None, None), (b"said", json.dumps({"n": 1}), None, None), (b"keyed", None, "k1", None),
            (b"later", None, None, due)]
    frame = spark.createDataFrame(rows, "body binary, attributes string, key string, due_at timestamp").coalesce(1)
    write(frame, live, queue)
    given = {delivery.body: delivery for delivery in live.receive(queue, 10)}
    assert set(given) == {b"plain", b"said", b"keyed"}
    assert given[b"said"].attributes == json.dumps({"n": 1})
    reader = spark.read.format("angelhair").options(**live.options).option("queue", queue)
    (later,) = reader.load().where("state = 'delayed'").collect()
    assert abs((later.due_at.replace(tzinfo=UTC) - due).total_seconds()) < 0.01
    delayed = spark.createDataFrame([("soon", 3600.5)], "body string, delay double")
    write(delayed, live, queue)
    found = [row for row in reader.load().where("state = 'delayed'").collect() if bytes(row.body) == b"soon"]
    assert [(row.due_at - row.enqueued_at).total_seconds() for row in found] == [3600.5]


def test_a_key_is_one_message(spark: SparkSession, live: Live) -> None:
    queue = live.create()
    frame = spark.createDataFrame([("a", "1"), ("b", "2"), ("c", "1"), ("d", None)], "body string, key string")
    write(frame.coalesce(1), live, queue)
    write(frame.coalesce(1), live, queue)
    assert received(live, queue) == {b"a": 1, b"b": 1, b"d": 2}
    with pytest.raises(PySparkException, match="onConflict: the queue has 3 of the rows already, such as the one"):
        write(frame.coalesce(1), live, queue, onConflict="fail")
    fresh = spark.createDataFrame([("e", "5")], "body string, key string")
    write(fresh, live, queue, onConflict="fail", writeId="once")
    # The same write again is no conflict with itself.
    write(fresh, live, queue, onConflict="fail", writeId="once")
    assert received(live, queue)[b"e"] == 1


def test_a_conflict_is_one_for_the_next_try_of_the_task_too(live: Live) -> None:
    queue = live.create()
    live.put(queue, [NewMessage(b"before", key="known")])
    given = {**live.options, "queue": queue, "onConflict": "fail"}
    options = WriteOptions.of({name.lower(): value for name, value in given.items()})
    for _ in range(4):
        rows = pa.RecordBatch.from_pydict({"body": pa.array([b"a"], pa.binary()), "key": pa.array(["known"])})
        with pytest.raises(InvalidRequest, match="onConflict"):
            put_all(options, "batch/x/0", iter([rows]))


def test_a_block_may_have_no_delays_at_all() -> None:
    rows = pa.RecordBatch.from_pydict({"body": pa.array([b"a", b"b"]), "delay": pa.array([None, None], pa.int32())})
    assert [message.delay_ms for message in Block(rows).as_messages(0)] == [None, None]


@pytest.mark.parametrize("delay", [math.nan, math.inf, -math.inf])
def test_a_delay_that_is_no_number_is_refused_before_anything_is_begun(delay: float) -> None:
    rows = pa.RecordBatch.from_pydict({"body": pa.array([b"a", b"b"], pa.binary()), "delay": pa.array([None, delay])})
    with pytest.raises(InvalidRequest, match="delay"):
        Block(rows)


def test_a_batch_with_a_name_is_written_once(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    rows = orders(spark, 40, 1).coalesce(1)
    write(rows, live, queue, writeId="monday")
    write(rows, live, queue, writeId="monday")
    assert received(live, queue) == expected(40)
    write(rows, live, queue, writeId="tuesday")
    assert received(live, queue) == expected(40)
    with pytest.raises(PySparkException, match="were 40 when batch/monday/0 first tried, and are 41 now"):
        write(orders(spark, 41, 1).coalesce(1), live, queue, writeId="monday")
    assert received(live, queue) == {}


class Ended(Exception):
    """A task that was ended on purpose."""


STEPS = ("begin", "begin done", "put", "put done")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("block", [0, 1])
def test_a_task_that_ends_anywhere_is_run_again(live: Live, step: str, block: int) -> None:
    queue = live.create(**QUICK)
    options = write_options(live, queue)
    writer = uuid.uuid4().hex
    seen: list[str] = []

    def end_there(now: str) -> None:
        seen.append(now)
        if seen.count(step) == block + 1:
            raise Ended

    with pytest.raises(Ended):
        put_all(options, writer, batches(25), end_there)
    got = received(live, queue)
    again = put_all(options, writer, batches(25, size=4))
    assert again.messages + again.repeated == 25
    # Blocks of ten: the first is known if the second was reached, or if it was put itself.
    assert again.repeated == 10 * (block + (step == "put done"))
    assert put_all(options, writer, batches(25)) == Written(repeated=25, blocks=3)
    assert got + received_at_last(live, queue, 25 - got.total()) == expected(25)


def test_a_task_goes_on_when_half_of_a_block_was_given_out_and_finished(live: Live) -> None:
    queue = live.create(bucket_size=5, repair_timeout_ms=100, history_ms=0)
    options, writer = write_options(live, queue), uuid.uuid4().hex

    def end_there(now: str) -> None:
        if now == "put done":
            raise Ended

    with pytest.raises(Ended):
        put_all(options, writer, batches(10), end_there)
    assert received(live, queue) == expected(10)
    live.put(queue, [NewMessage(b"x")] * 5)
    received(live, queue)
    live.work_until(queue, "repair", 2)
    assert put_all(options, writer, batches(10)).repeated == 10
    assert received(live, queue) == {}


def test_a_stream_that_dies_between_put_and_commit_puts_nothing_twice(
    spark: SparkSession, live: Live, tmp_path: Path
) -> None:
    source, queue = live.create(**QUICK), live.create()
    live.put(source, [NewMessage(b"order %d" % number) for number in range(60)])
    live.drain(source, 60)
    live.work_until(source, "settled", 6)

    def run() -> None:
        arriving = spark.readStream.format("angelhair").options(**live.options).option("queue", source)
        arriving = arriving.option("maxMessagesPerTrigger", "20").load().select("body")
        query = (
            arriving.writeStream.format("angelhair").options(**live.options).option("queue", queue)
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )
        query.awaitTermination()

    run()
    assert received(live, queue) == expected(60)
    # As after a crash between the last batch's messages and Spark's note of it: the batch is written again.
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        path.unlink(missing_ok=True)
    run()
    assert received(live, queue) == {}


def test_a_failing_task_is_tried_again_by_spark(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    """In a session that gives a task three tries, one dies after its rows were put."""
    queue = live.create(bucket_size=10)
    marker = tmp_path / "died"

    def dying(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from parts
        if not marker.exists():
            marker.touch()
            raise RuntimeError("on purpose")

    frame = orders(spark, 30, 1).coalesce(1).mapInArrow(dying, "body string")
    with pytest.raises(PySparkException):
        write(frame, live, queue, blockMessages=5, writeId="tried")
    write(frame, live, queue, blockMessages=5, writeId="tried")
    assert received(live, queue) == expected(30)


# --- without Spark ----------------------------------------------------------------------------------------------------


def write_options(live: Live, queue: str, **more: str) -> WriteOptions:
    given = {**live.options, "queue": queue, "blockMessages": "10", **more}
    return WriteOptions.of({name.lower(): value for name, value in given.items()})


def batches(count: int, size: int = 100) -> Iterator[pa.RecordBatch]:
    bodies = [b"order %d" % number for number in range(count)]
    for begin in range(0, count, size):
        yield pa.RecordBatch.from_pydict({"body": pa.array(bodies[begin : begin + size], pa.binary())})


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_blocks_do_not_depend_on_how_batches_are_cut(size: int) -> None:
    bodies = [b"x" * (number % 13) for number in range(100)]
    parts = (
        pa.RecordBatch.from_pydict({"body": pa.array(bodies[begin : begin + size], pa.binary())})
        for begin in range(0, 100, size)
    )
    found = list(blocks(parts, 9, 40))
    whole = list(blocks(iter([pa.RecordBatch.from_pydict({"body": pa.array(bodies, pa.binary())})]), 9, 40))
    assert [block.digest for block in found] == [block.digest for block in whole]
    assert [message.body for block in found for message in block.as_messages(0)] == bodies
    for block in found:
        sizes = [len(message.body) for message in block.as_messages(0)]
        assert len(sizes) <= 9 and (sum(sizes) <= 40 or len(sizes) == 1)


def test_a_body_that_is_larger_than_a_block_is_a_block() -> None:
    bodies = [b"", b"x" * 50, b"y", b"z" * 40, b""]
    found = blocks(iter([pa.RecordBatch.from_pydict({"body": pa.array(bodies, pa.binary())})]), 9, 40)
    assert [[len(message.body) for message in block.as_messages(0)] for block in found] == [[0], [50], [1], [40, 0]]


def test_digests_tell_rows_apart() -> None:
    def digest(**columns: list[Any]) -> str:
        return Block(pa.RecordBatch.from_pydict(columns)).digest

    bodies = [b"ab", b"c"]
    found = [
        digest(body=bodies), digest(body=[b"a", b"bc"]), digest(body=bodies, key=["1", None]),
        digest(body=bodies, attributes=["1", None]), digest(body=bodies, key=[None, "1"]),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("body string, colour string", "'colour' is none that can be written"),
        ("key string", "there is no `body`"),
        ("body int", "body is int, and binary or string is wanted"),
        ("body string, delay string", "delay is string"),
        ("body string, delay int, due_at timestamp", "`delay` and `due_at` cannot both be given"),
    ],
)
def test_columns_that_nobody_would_write_are_refused(schema: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        checked(StructType.fromDDL(schema))
    checked(StructType.fromDDL("body binary, attributes string, key string, delay decimal(9,3)"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"colour": "red"}, "is no option of a write"),
        ({"onconflict": "perhaps"}, "is none of ignore, fail"),
        ({"retrywindow": "0"}, "must be a whole number above 0"),
        ({"data": "here", "contactpoints": "there"}, "cannot both be given"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        WriteOptions.of({"queue": "q", "data": "d", **options})
    with pytest.raises(InvalidRequest, match="which queue"):
        WriteOptions.of({"data": "d"})
    with pytest.raises(InvalidRequest, match="is for a batch"):
        WriteOptions.of({"data": "d", "queue": "q", "writeid": "w"}, streaming=True)


def test_a_queue_that_is_not_there_and_a_null_body_are_said(spark: SparkSession, live: Live) -> None:
    with pytest.raises(PySparkException, match="nowhere"):
        write(orders(spark, 1), live, "nowhere")
    queue = live.create()
    with pytest.raises(PySparkException, match="body: is null in a row"):
        write(spark.createDataFrame([(None,)], "body string"), live, queue)
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        orders(spark, 1).write.format("angelhair").mode("overwrite").options(**live.options, queue=queue).save()
    assert live.run(live.engine.stats(ACCOUNT, queue)).visible == 0


def test_a_rate_is_kept(live: Live) -> None:
    queue = live.create()
    options = write_options(live, queue, maxMessagesPerSecond="200", blockMessages="1000")
    assert options.block_messages == 200
    started = datetime.now(UTC)
    assert put_all(options, "slow", batches(300)).messages == 300
    assert datetime.now(UTC) - started >= timedelta(seconds=1.5)


def test_every_option_and_column_is_described() -> None:
    assert all(says.endswith(".") for says in WRITE_OPTIONS.values())
    assert all(says.endswith(".") for _, says in WRITTEN.values())
