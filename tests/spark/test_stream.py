"""A queue as a stream: each message in one batch, the same batch after a crash, as much at a time as was asked for."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

from angelhair.errors import InvalidRequest
from angelhair.model import NewMessage, QueueSettings
from angelhair.settings import ACCOUNT
from angelhair.spark.options import ReadOptions
from angelhair.spark.stream import QueueStreamReader, shares
from tests.spark.live import QUICK, Live

BUCKET = QUICK["bucket_size"]

Each = Callable[[DataFrame, int], None]
Make = Callable[..., QueueStreamReader]


def stream(spark: SparkSession, live: Live, queue: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("angelhair").options(**live.options).option("queue", queue)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def ran(frame: DataFrame, checkpoint: Path, each: Each) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert not query.isActive
    return query


def collecting(batches: dict[int, list[int]]) -> Each:
    def each(frame: DataFrame, number: int) -> None:
        assert number not in batches
        batches[number] = sorted(row.number for row in frame.select("number").collect())

    return each


def offsets_in(told: Any) -> dict[str, Any]:
    """As a query's progress has them: text, or what the text says."""
    found: dict[str, Any] = json.loads(told) if isinstance(told, str) else told
    return found


@pytest.fixture
def reader(live: Live) -> Iterator[Make]:
    """Makes readers as Spark's driver has them, and stops them in the end."""
    made: list[QueueStreamReader] = []

    def make(queue: str, **more: str) -> QueueStreamReader:
        lowered = {name.lower(): value for name, value in {**live.options, **more}.items()}
        made.append(QueueStreamReader(ReadOptions.of({**lowered, "queue": queue}, streaming=True)))
        return made[-1]

    yield make
    for used in made:
        used.stop()


def filled(live: Live, messages: int, **settings: Any) -> str:
    """A queue whose full buckets, all but the last, are final."""
    queue = live.create(**{**QUICK, **settings})
    live.put(queue, [NewMessage(b"%d" % number) for number in range(messages)])
    live.receive(queue, 1_000, 3_600_000)
    live.work_until(queue, "settled", messages // BUCKET)
    return queue


def test_every_message_comes_once_and_a_stream_goes_on_where_it_was(
    spark: SparkSession, live: Live, tmp_path: Path
) -> None:
    queue = filled(live, 40)
    batches: dict[int, list[int]] = {}
    query = ran(stream(spark, live, queue, maxMessagesPerTrigger=15), tmp_path, collecting(batches))
    assert list(batches.values()) == [list(range(15)), list(range(15, 30)), list(range(30, 40))]
    progress = query.recentProgress[-1]["sources"][0]
    assert offsets_in(progress["endOffset"])["0"] == 40
    assert offsets_in(progress["latestOffset"])["0"] == 40

    live.put(queue, [NewMessage(b"more")] * 25)
    live.receive(queue, 1_000, 3_600_000)
    live.work_until(queue, "settled", 6)
    later: dict[int, list[int]] = {}
    ran(stream(spark, live, queue), tmp_path, collecting(later))
    # The last five are in a bucket that may still gain messages.
    assert [number for batch in later.values() for number in batch] == list(range(40, 60))
    assert min(later) == max(batches) + 1


def test_the_lag_is_in_the_progress(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    """In messages and seconds, by lane: what could be read, and what is there and cannot be read yet."""
    queue = live.create(**QUICK)
    live.put_ago(queue, 3_600_000, [NewMessage(b"x")] * 45)
    live.receive(queue, 1_000, 3_600_000)
    live.work_until(queue, "settled", 4)
    frame = stream(spark, live, queue, maxMessagesPerTrigger=25, progressName="orders, nightly")
    query = ran(frame, tmp_path, lambda batch, _: None)
    told = [offsets_in(progress["sources"][0]["latestOffset"]) for progress in query.recentProgress]
    lags = [offsets["lag"] for offsets in told]
    assert [(lag["name"], lag["messages"], lag["unsettled"]) for lag in lags[:2]] == [
        ("orders, nightly", {"0": 15}, {"0": 5}), ("orders, nightly", {"0": 0}, {"0": 5})
    ]
    assert all(3_600 <= lag["seconds"]["0"] < 3_900 for lag in lags)
    # A checkpoint has nothing of it.
    written = "".join(path.read_text() for path in (tmp_path / "offsets").iterdir() if path.name.isdigit())
    assert "incarnation" in written and "lag" not in written


def test_without_anything_to_come_there_is_no_lag(live: Live, reader: Make) -> None:
    queue = filled(live, 20)
    asked = reader(queue, isolation="committed")
    assert "lag" not in asked.reportLatestOffset()
    start = asked.initialOffset()
    assert asked.latestOffset(start, ReadMaxRows(5))["0"] == 5
    behind = asked.reportLatestOffset()["lag"]
    assert (behind["name"], behind["messages"], behind["unsettled"]) == (queue, {"0": 15}, {"0": 0})
    asked.latestOffset(start, ReadAllAvailable())
    assert asked.reportLatestOffset()["lag"] == {
        "name": queue, "messages": {"0": 0}, "unsettled": {"0": 0}, "seconds": {"0": 0}
    }


def test_a_batch_that_failed_is_the_same_when_it_comes_again(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = filled(live, 40)
    tried: list[list[int]] = []

    def failing(frame: DataFrame, number: int) -> None:
        tried.append(sorted(row.number for row in frame.select("number").collect()))
        raise ValueError("on purpose")

    with pytest.raises(PySparkException, match="on purpose"):
        ran(stream(spark, live, queue, maxMessagesPerTrigger=25), tmp_path, failing)
    # What comes meanwhile belongs to another batch.
    live.put(queue, [NewMessage(b"more")] * 10)
    live.receive(queue, 1_000, 3_600_000)
    live.work_until(queue, "settled", 5)
    batches: dict[int, list[int]] = {}
    ran(stream(spark, live, queue, maxMessagesPerTrigger=25), tmp_path, collecting(batches))
    assert batches[0] == tried[0] == list(range(25))
    assert [number for batch in batches.values() for number in batch] == list(range(50))


def test_where_a_stream_begins(live: Live, reader: Make) -> None:
    queue = filled(live, 40)
    assert reader(queue).initialOffset()["0"] == 0
    assert reader(queue, start="latest").initialOffset()["0"] == 40
    assert reader(queue, start='{"0": 17}').initialOffset()["0"] == 17
    assert reader(queue, start="2000-01-01T00:00:00Z").initialOffset()["0"] == 0
    assert reader(queue, start="2199-01-01").initialOffset()["0"] >= 30
    assert reader(queue, start="archived").initialOffset()["0"] == 0


def test_a_stream_can_begin_at_the_archive_mark(live: Live, reader: Make) -> None:
    queue = live.create(**QUICK)
    live.put(queue, [NewMessage(b"x")] * 35)
    live.drain(queue, 35)
    live.work_until(queue, "repair", 3)
    assert live.run(live.engine.archived_up_to(ACCOUNT, queue, 0, 2)) == 2
    assert reader(queue, start="archived").initialOffset()["0"] == 20


def test_as_much_at_a_time_as_was_asked_for(live: Live, reader: Make) -> None:
    queue = filled(live, 40)
    start = reader(queue).initialOffset()
    asked = reader(queue)
    assert asked.latestOffset(start, ReadAllAvailable())["0"] == 40
    assert asked.latestOffset(start, ReadMaxRows(7))["0"] == 7
    # Bodies of one byte, and later of two.
    assert asked.latestOffset(start, ReadMaxBytes(5))["0"] == 5
    assert reader(queue, maxBytesPerTrigger="100").getDefaultReadLimit() == ReadMaxBytes(100)
    assert reader(queue, maxMessagesPerTrigger="9").getDefaultReadLimit() == ReadMaxRows(9)
    assert reader(queue).getDefaultReadLimit() == ReadAllAvailable()


def test_a_stream_waits_for_enough_but_not_for_ever(live: Live, reader: Make) -> None:
    queue = filled(live, 40)
    start = reader(queue).initialOffset()
    patient = reader(queue, minMessagesPerTrigger="100", maxTriggerDelay="3600")
    limit = patient.getDefaultReadLimit()
    assert limit == ReadMinRows(100)
    assert patient.latestOffset(start, limit) == start
    assert patient.latestOffset(start, ReadMinRows(40))["0"] == 40
    hasty = reader(queue, minMessagesPerTrigger="100", maxTriggerDelay="1")
    offsets = []
    for _ in range(3):
        offsets.append(hasty.latestOffset(start, limit)["0"])
        time.sleep(0.6)
    assert (offsets[0], max(offsets)) == (0, 40)


def test_with_available_now_a_stream_ends_where_it_was_when_it_began(live: Live, reader: Make) -> None:
    queue = filled(live, 20)
    ending = reader(queue)
    start = ending.initialOffset()
    ending.prepareForTriggerAvailableNow()
    live.put(queue, [NewMessage(b"more")] * 20)
    live.receive(queue, 1_000, 3_600_000)
    live.work_until(queue, "settled", 4)
    assert ending.latestOffset(start, ReadMaxRows(1_000))["0"] == 20
    assert ending.reportLatestOffset()["0"] == 40


def test_no_lane_waits_for_another_to_be_empty() -> None:
    assert shares({"0": 100, "1": 100}, 10) == {"0": 5, "1": 5}
    assert shares({"0": 2, "1": 100}, 10) == {"0": 2, "1": 8}
    assert shares({"0": 1, "1": 1, "2": 1}, 2) == {"0": 1, "1": 1, "2": 0}
    assert shares({"0": 3, "1": 4}, 100) == {"0": 3, "1": 4}
    assert shares({}, 5) == {}


def test_all_lanes_are_read(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = live.create(**QUICK, lanes=2)
    ids = {str(message_id) for _ in range(4) for message_id in live.put(queue, [NewMessage(b"x")] * 10)}
    live.receive(queue, 1_000, 3_600_000)
    for lane in (0, 1):
        live.work_until(queue, "settled", 2, lane)
    found: list[str] = []
    frame = stream(spark, live, queue, maxMessagesPerTrigger=11)
    ran(frame, tmp_path, lambda batch, _: found.extend(row.id for row in batch.select("id").collect()))
    assert sorted(found) == sorted(ids)


def test_a_queue_that_was_made_again_is_another(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue = filled(live, 20)
    ran(stream(spark, live, queue), tmp_path, collecting({}))
    live.run(live.engine.delete_queue(ACCOUNT, queue))
    live.run(live.engine.create_queue(ACCOUNT, queue, QueueSettings(**QUICK)))
    live.put(queue, [NewMessage(b"new")] * 30)
    live.receive(queue, 1_000, 3_600_000)
    live.work_until(queue, "settled", 3)
    with pytest.raises(PySparkException, match="deleted and made again"):
        ran(stream(spark, live, queue), tmp_path, collecting({}))


def test_what_was_dropped_before_a_stream_came_to_it_is_said(
    spark: SparkSession, live: Live, tmp_path: Path, reader: Make
) -> None:
    queue = live.create(**QUICK, history_ms=0)
    live.put(queue, [NewMessage(b"x")] * 40)
    live.drain(queue, 10)
    live.work_until(queue, "settled", 1)
    stopped = reader(queue).initialOffset()
    live.drain(queue, 20)
    live.work_until(queue, "dropped", 2)
    assert stopped["0"] < 20
    begins = json.dumps({"0": stopped["0"]})
    with pytest.raises(PySparkException, match="of lane 0 were dropped before they were read"):
        ran(stream(spark, live, queue, start=begins, isolation="committed"), tmp_path / "strict", collecting({}))
    batches: dict[int, list[int]] = {}
    lenient = stream(spark, live, queue, start=begins, isolation="committed", failOnDataLoss="false")
    ran(lenient, tmp_path / "lenient", collecting(batches))
    left = [number for batch in batches.values() for number in batch]
    assert left == list(range(left[0], 40)) and left[0] in (20, 30)


def test_a_reader_that_has_looked_still_travels(live: Live, reader: Make) -> None:
    queue = filled(live, 20)
    looked = reader(queue)
    start = looked.initialOffset()
    end = looked.latestOffset(start, ReadAllAvailable())
    assert looked.partitions(start, end)
    again = pickle.loads(pickle.dumps(looked))
    assert again.latestOffset(start, ReadAllAvailable()) == end
    looked.stop()
    again.stop()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"end": "latest"}, "end: is for a batch"),
        ({"lake": "somewhere"}, "lake: is for a batch"),
        ({"start": "yesterday"}, "start: 'yesterday' is none of earliest, latest, archived"),
        ({"start": '{"0": -1}'}, "start: ids are whole numbers"),
        ({"maxMessagesPerTrigger": "1", "maxBytesPerTrigger": "1"}, "Spark takes one of them"),
    ],
)
def test_a_mistake_is_named(live: Live, given: dict[str, str], said: str, reader: Make) -> None:
    with pytest.raises(InvalidRequest, match=said):
        reader(live.create(), **given)
