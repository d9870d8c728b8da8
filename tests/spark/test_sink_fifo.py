"""Rows become messages of a fifo queue, each once and each group in its order, wherever a try ends."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from angelhair.errors import InvalidRequest
from angelhair.model import DATABAG, FIFO, TIMELINE, NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.pipelines.load import load
from angelhair.spark.pipelines.replay import Asked, replay
from angelhair.spark.place import Place
from angelhair.spark.writing.options import WriteOptions
from angelhair.spark.writing.sink import Written, put_all
from tests.spark.live import QUICK, Live

GROUPS = 3


def write(frame: DataFrame, live: Live, queue: str, **options: Any) -> None:
    named = {**live.options, "queue": queue, **{name: str(value) for name, value in options.items()}}
    frame.write.format("angelhair").mode("append").options(**named).save()


def by_group(live: Live, queue: str) -> dict[str | None, list[bytes]]:
    """All that can be received now, acked: in the order in which it comes."""
    found: dict[str | None, list[bytes]] = {}
    while taken := live.receive(queue, 100):
        for delivery in taken:
            found.setdefault(delivery.group, []).append(delivery.body)
        live.ack(queue, taken)
    return found


def in_order(count: int) -> dict[str | None, list[bytes]]:
    return {
        f"g{group}": [b"order %d" % number for number in range(count) if number % GROUPS == group]
        for group in range(GROUPS)
    }


def orders(spark: SparkSession, count: int) -> DataFrame:
    """Rows out of order, put in order as the page says: by group, and sorted within it."""
    rows = spark.range(count).orderBy(f.col("id").desc()).select(
        "id", f.concat(f.lit("order "), "id").alias("body"),
        f.concat(f.lit("g"), f.expr(f"id % {GROUPS}")).alias("group"),
    )
    return rows.repartition(2, "group").sortWithinPartitions("id").select("body", "group")


def some(rows: Sequence[tuple[Any, ...]], *names: str) -> Iterator[pa.RecordBatch]:
    types = {name: pa.binary() if name == "body" else pa.string() for name in names}
    columns = zip(*rows, strict=True)
    yield pa.RecordBatch.from_pydict(
        {name: pa.array(values, types[name]) for name, values in zip(names, columns, strict=True)}
    )


def batches(count: int, size: int = 100) -> Iterator[pa.RecordBatch]:
    rows = [(b"order %d" % number, f"g{number % GROUPS}") for number in range(count)]
    for begin in range(0, count, size):
        yield from some(rows[begin : begin + size], "body", "group")


def write_options(live: Live, queue: str, **more: str) -> WriteOptions:
    given = {**live.options, "queue": queue, "blockMessages": "10", **more}
    return WriteOptions.of({name.lower(): value for name, value in given.items()})


def test_rows_are_messages_and_groups_keep_their_order(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=FIFO, bucket_size=10)
    write(orders(spark, 105), live, queue, blockMessages=20)
    assert by_group(live, queue) == in_order(105)


def test_lanes_share_the_groups(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=FIFO, bucket_size=10, lanes=3, dedup_scope="group")
    write(orders(spark, 60), live, queue, writeId="monday")
    write(orders(spark, 60), live, queue, writeId="monday")
    assert by_group(live, queue) == in_order(60)


def test_a_batch_with_a_name_is_written_once(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=FIFO)
    rows = orders(spark, 40).coalesce(1)
    write(rows, live, queue, writeId="monday")
    write(rows, live, queue, writeId="monday")
    assert by_group(live, queue) == in_order(40)
    write(rows, live, queue, writeId="tuesday")
    assert by_group(live, queue) == in_order(40)
    with pytest.raises(PySparkException, match="others than when batch/monday/0 first tried"):
        write(rows.withColumn("group", f.lit("g0")), live, queue, writeId="monday")
    assert by_group(live, queue) == {}


def test_a_key_is_one_message_and_its_attributes_arrive(spark: SparkSession, live: Live) -> None:
    queue = live.create(kind=FIFO)
    rows = [("a", "1", "g", '{"n": 1}'), ("b", "2", "g", None), ("c", "1", "g", None), ("d", None, "g", None)]
    columns = "body string, key string, group string, attributes string"
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    write(frame, live, queue)
    write(frame, live, queue)
    taken = live.receive(queue, 10)
    assert [(delivery.body, delivery.attributes) for delivery in taken] == [
        (b"a", '{"n": 1}'), (b"b", None), (b"d", None), (b"d", None)
    ]
    with pytest.raises(PySparkException, match="onConflict: the queue has 3 of the rows already, such as the one"):
        write(frame, live, queue, onConflict="fail")
    fresh = spark.createDataFrame([("e", "5", "h", None), ("f", None, "h", None)], columns).coalesce(1)
    write(fresh, live, queue, onConflict="fail", writeId="once")
    # The same write again is no conflict with itself.
    write(fresh, live, queue, onConflict="fail", writeId="once")
    assert by_group(live, queue)["h"] == [b"e", b"f"]


class Ended(Exception):
    """A task that was ended on purpose."""


@pytest.mark.parametrize("step", ["begin", "begin done", "put", "put done"])
@pytest.mark.parametrize("block", [0, 1])
def test_a_task_that_ends_anywhere_is_run_again(live: Live, step: str, block: int) -> None:
    queue = live.create(kind=FIFO)
    options, writer = write_options(live, queue), uuid.uuid4().hex
    seen: list[str] = []

    def end_there(now: str) -> None:
        seen.append(now)
        if seen.count(step) == block + 1:
            raise Ended

    with pytest.raises(Ended):
        put_all(options, writer, batches(25), end_there)
    got = by_group(live, queue)
    again = put_all(options, writer, batches(25, size=4))
    assert (again.repeated, again.messages) == ((done := 10 * (block + (step == "put done"))), 25 - done)
    assert put_all(options, writer, batches(25)) == Written(repeated=25, blocks=3)
    rest = by_group(live, queue)
    assert {group: got.get(group, []) + rest.get(group, []) for group in in_order(25)} == in_order(25)


def test_a_stream_that_dies_between_put_and_commit_puts_nothing_twice(
    spark: SparkSession, live: Live, tmp_path: Path
) -> None:
    source, queue = live.create(**QUICK), live.create(kind=FIFO)
    live.put(source, [NewMessage(b"order %d" % number) for number in range(60)])
    live.drain(source, 60)
    live.work_until(source, "settled", 6)

    def run() -> None:
        arriving = spark.readStream.format("angelhair").options(**live.options).option("queue", source)
        arriving = arriving.option("maxMessagesPerTrigger", "20").load().select(
            "body", f.concat(f.lit("g"), f.expr(f"number % {GROUPS}")).alias("group")
        )
        query = (
            arriving.writeStream.format("angelhair").options(**live.options).option("queue", queue)
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )
        query.awaitTermination()

    run()
    found = by_group(live, queue)
    assert {group: Counter(bodies) for group, bodies in found.items()} == {
        group: Counter(bodies) for group, bodies in in_order(60).items()
    }
    # As after a crash between the last batch's messages and Spark's note of it: the batch is written again.
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        path.unlink(missing_ok=True)
    run()
    assert by_group(live, queue) == {}


def test_a_failing_task_is_tried_again(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    """It dies when some of its blocks are there, and is run again under its name."""
    queue = live.create(kind=FIFO, bucket_size=10)
    marker = tmp_path / "died"

    def dying(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from parts
        if not marker.exists():
            marker.touch()
            raise RuntimeError("on purpose")

    frame = orders(spark, 30).coalesce(1).mapInArrow(dying, "body string, group string")
    with pytest.raises(PySparkException):
        write(frame, live, queue, blockMessages=5, writeId="tried")
    write(frame, live, queue, blockMessages=5, writeId="tried")
    assert by_group(live, queue) == in_order(30)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "names", "said"),
    [
        ([(b"a",)], ("body",), "columns: there is no `group`, which a fifo queue needs"),
        ([(b"a", "g"), (b"b", None)], ("body", "group"), "group: is null in a row"),
    ],
)
def test_rows_without_a_group_are_refused_and_can_be_put_right(
    live: Live, rows: list[tuple[Any, ...]], names: tuple[str, ...], said: str
) -> None:
    queue = live.create(kind=FIFO)
    options, writer = write_options(live, queue), uuid.uuid4().hex
    with pytest.raises(InvalidRequest, match=said):
        put_all(options, writer, some(rows, *names))
    assert by_group(live, queue) == {}
    assert put_all(options, writer, some([(b"a", "g")], "body", "group")) == Written(messages=1, blocks=1)
    assert by_group(live, queue) == {"g": [b"a"]}


@pytest.mark.parametrize(
    ("name", "values"),
    [("delay", pa.array([None, None], pa.int32())), ("due_at", pa.array([0, 0], pa.timestamp("us")))],
)
def test_a_delay_of_its_own_no_row_has(live: Live, name: str, values: pa.Array) -> None:
    queue = live.create(kind=FIFO)
    rows = pa.RecordBatch.from_pydict({"body": pa.array([b"a", b"b"]), "group": pa.array(["g", "g"]), name: values})
    with pytest.raises(InvalidRequest, match=f"columns: `{name}` is none that this queue takes: .* one delay"):
        put_all(write_options(live, queue), "x", iter([rows]))
    assert by_group(live, queue) == {}


def test_a_group_is_for_fifo_queues(spark: SparkSession, live: Live) -> None:
    queue = live.create()
    with pytest.raises(PySparkException, match="columns: `group` is none that this queue takes: only fifo queues"):
        write(orders(spark, 3), live, queue)
    assert live.run(live.engine.stats(ACCOUNT, queue)).visible == 0


@pytest.mark.parametrize("kind", [TIMELINE, DATABAG])
@pytest.mark.parametrize("names", [("body",), ("body", "group")])
def test_other_kinds_take_no_rows(live: Live, kind: str, names: tuple[str, ...]) -> None:
    queue = live.create(kind=kind)
    with pytest.raises(InvalidRequest, match="takes no runs of messages, which Spark writes"):
        put_all(write_options(live, queue), "x", some([(b"a", "g")[: len(names)]], *names))


# --- jobs -------------------------------------------------------------------------------------------------------------


def place_of(live: Live) -> Place:
    return Place.of({name.lower(): value for name, value in live.options.items()})


@pytest.mark.parametrize("columns", [{}, {"group": "upper(team)"}])
def test_load_passes_groups_on(spark: SparkSession, live: Live, columns: dict[str, str]) -> None:
    queue = live.create(kind=FIFO)
    table = spark.createDataFrame([("a", "g", "t", 5)], "body string, group string, team string, delay int")
    load(table, place_of(live), ACCOUNT, queue, "once", columns)
    load(table, place_of(live), ACCOUNT, queue, "once", columns)
    assert by_group(live, queue) == {"T" if columns else "g": [b"a"]}


def test_load_into_a_bucketed_queue_takes_no_group_that_is_not_asked_for(spark: SparkSession, live: Live) -> None:
    queue = live.create()
    table = spark.createDataFrame([("a", "g")], "body string, group string")
    load(table, place_of(live), ACCOUNT, queue, "once", {})
    assert by_group(live, queue) == {None: [b"a"]}
    with pytest.raises(PySparkException, match="only fifo queues"):
        load(table, place_of(live), ACCOUNT, queue, "twice", {"group": "group"})


def test_replay_has_no_groups_for_a_fifo_queue(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    source, queue = live.create(**QUICK), live.create(kind=FIFO)
    live.put(source, [NewMessage(b"a")] * 10)
    live.drain(source, 10)
    live.work_until(source, "settled", 1)
    with pytest.raises(PySparkException, match="there is no `group`"):
        replay(spark, place_of(live), ACCOUNT, str(tmp_path), Asked(source, queue))
    assert by_group(live, queue) == {}
