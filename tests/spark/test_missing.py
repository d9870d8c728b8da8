"""failOnDataLoss: which ids are not there, and why; or they are passed over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.missing import dropped
from angelhair.spark.planning import Run
from angelhair.spark.refusals import DataLost
from angelhair.spark.source import QueueReader
from angelhair.spark.stream import INCARNATION, Offset, QueueStreamReader
from tests.spark.live import QUICK, Live, elsewhere, numbers_read, read_options

MINUTE_MS = 60_000
SETTLED = "were dropped before they were read: acked, moved or expired, and the queue's history is over for them"


def batch(live: Live, queue: str, **more: str) -> QueueReader:
    return QueueReader(read_options(live, queue, minPartitions="1", **more))


def only(partitions: object) -> InputPartition:
    assert isinstance(partitions, list)
    (partition,) = partitions
    assert isinstance(partition, InputPartition)
    return partition


@pytest.fixture
def stream(live: Live) -> Iterator[list[QueueStreamReader]]:
    """What is put in here is stopped in the end."""
    made: list[QueueStreamReader] = []
    yield made
    for reader in made:
        reader.stop()


def streaming(live: Live, queue: str, stream: list[QueueStreamReader], **more: str) -> QueueStreamReader:
    stream.append(QueueStreamReader(read_options(live, queue, True, minPartitions="1", **more)))
    return stream[-1]


def test_what_was_dropped_after_its_history_is_said(live: Live) -> None:
    queue = live.create(**QUICK, history_ms=0)
    live.put(queue, [NewMessage(b"x")] * 45)
    reader = batch(live, queue)
    partition = only(reader.partitions())
    live.drain(queue, 25)
    live.work_until(queue, "dropped", 2)
    with pytest.raises(DataLost, match=f"ids 0 to 19 of lane 0 {SETTLED}"):
        elsewhere(numbers_read, reader, partition)
    lenient = batch(live, queue, failOnDataLoss="false")
    assert elsewhere(numbers_read, lenient, partition) == list(range(20, 45))
    # A read that begins now begins where there is something.
    now = only(batch(live, queue).partitions())
    assert now.run.first == 20  # type: ignore[attr-defined]


def test_what_expired_and_was_dropped_is_said(live: Live) -> None:
    queue = live.create(**QUICK, history_ms=0, retention_ms=MINUTE_MS)
    live.put_ago(queue, 10 * MINUTE_MS, [NewMessage(b"x")] * 25)
    reader = batch(live, queue)
    partition = only(reader.partitions())
    live.work_until(queue, "dropped", 2)
    with pytest.raises(DataLost, match=f"ids 0 to 19 of lane 0 {SETTLED}"):
        elsewhere(numbers_read, reader, partition)


def test_what_was_purged_and_dropped_is_said(live: Live, stream: list[QueueStreamReader]) -> None:
    queue = live.create(**QUICK, history_ms=0)
    live.put(queue, [NewMessage(b"x")] * 45)
    reader = batch(live, queue)
    planned = only(reader.partitions())
    live.run(live.engine.purge(ACCOUNT, queue))
    live.work_until(queue, "dropped", 4)
    said = "ids 0 to 39 of lane 0 were dropped before they were read: the queue was purged up to id 44"
    with pytest.raises(DataLost, match=said):
        elsewhere(numbers_read, reader, planned)
    with pytest.raises(DataLost, match=said):
        batch(live, queue, start='{"0": 0}').partitions()

    behind = streaming(live, queue, stream, start='{"0": 0}', isolation="committed")
    start = behind.initialOffset()
    partition = only(behind.partitions(start, behind.latestOffset(start, ReadAllAvailable())))
    with pytest.raises(DataLost, match=said):
        elsewhere(numbers_read, behind, partition)
    lenient = streaming(live, queue, stream, failOnDataLoss="false")
    assert elsewhere(numbers_read, lenient, partition) == list(range(40, 45))


def test_what_was_asked_for_by_its_ids_and_is_gone(live: Live) -> None:
    queue = live.create(**QUICK, history_ms=0)
    live.put(queue, [NewMessage(b"x")] * 45)
    live.drain(queue, 25)
    live.work_until(queue, "dropped", 2)
    with pytest.raises(DataLost, match=f"ids 7 to 19 of lane 0 {SETTLED}"):
        batch(live, queue, start='{"0": 7}').partitions()
    with pytest.raises(DataLost, match=f"ids 7 to 11 of lane 0 {SETTLED}"):
        batch(live, queue, start='{"0": 7}', end='{"0": 12}').partitions()
    lenient = batch(live, queue, start='{"0": 7}', failOnDataLoss="false")
    assert elsewhere(numbers_read, lenient, only(lenient.partitions())) == list(range(20, 45))
    # Who asks for the earliest takes what there is.
    assert batch(live, queue, start="earliest").partitions()


def test_what_was_never_written_is_said(live: Live, stream: list[QueueStreamReader]) -> None:
    """As when a store is put back to an earlier state, and a checkpoint or a list of offsets is not."""
    queue = live.create(**QUICK)
    live.put(queue, [NewMessage(b"x")] * 45)
    said = "ids 45 to 499 of lane 0 were never written: the next id of the lane is 45"
    for options in ({"start": '{"0": 500}'}, {"end": '{"0": 500}'}):
        with pytest.raises(DataLost, match=said):
            batch(live, queue, **options).partitions()
    lenient = batch(live, queue, end='{"0": 500}', failOnDataLoss="false")
    assert elsewhere(numbers_read, lenient, only(lenient.partitions())) == list(range(45))

    reader = streaming(live, queue, stream, isolation="committed")
    ahead: Offset = {INCARNATION: reader.initialOffset()[INCARNATION], "0": 500}
    with pytest.raises(DataLost, match=said):
        reader.latestOffset(ahead, ReadAllAvailable())
    # Passed over: it goes on with the id that comes next.
    going_on = streaming(live, queue, stream, isolation="committed", failOnDataLoss="false")
    following = going_on.latestOffset(ahead, ReadAllAvailable())
    assert following["0"] == 45
    live.put(queue, [NewMessage(b"new")] * 3)
    end = going_on.latestOffset(following, ReadAllAvailable())
    assert elsewhere(numbers_read, going_on, only(going_on.partitions(following, end))) == [45, 46, 47]


def test_ids_that_a_failed_put_left_out_are_no_loss(live: Live) -> None:
    """They were reserved and never written: nobody was told that they are there."""
    queue = live.create(**QUICK)
    live.put(queue, [NewMessage(b"x")] * 5)
    live.reserve(queue, 7)
    live.put(queue, [NewMessage(b"x")] * 5)
    reader = batch(live, queue, start='{"0": 0}', end='{"0": 17}')
    found = elsewhere(numbers_read, reader, only(reader.partitions()))
    assert found == [*range(5), *range(12, 17)]


def test_reasons_are_told_apart_at_the_purge_mark() -> None:
    said = str(dropped(Run(0, 5, 40), 25))
    assert "ids 5 to 24 of lane 0 were dropped before they were read: the queue was purged up to id 24" in said
    assert f"ids 25 to 39 of lane 0 {SETTLED}" in said
    assert "purged" not in str(dropped(Run(0, 5, 40), 3))
