"""A databag as a table: each message once, with what became of it, and no more is read than what a filter leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
)

from angelhair import limits
from angelhair.clock import SystemClock
from angelhair.engine.databag import ids
from angelhair.engine.engine import Engine
from angelhair.engine.store import Partition
from angelhair.errors import InvalidRequest, StoreError, Unavailable
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage, QueueSettings
from angelhair.settings import ACCOUNT
from angelhair.spark.databags import BagPartition, _given, _holding
from angelhair.spark.reading.bags import Found, LockRow, Piece
from angelhair.spark.refusals import DataLost
from angelhair.spark.source import FilteredReader, QueueReader
from angelhair.spark.stream import QueueStreamReader
from angelhair.spark.writing.options import WriteOptions
from angelhair.spark.writing.sink import put_all
from tests.queues import Identities
from tests.spark.live import Live, StoreThen, WhileAgo, elsewhere, read_options, rows_scanned, table

MINUTE_MS = 60_000
BLOCKS = range(limits.BAG_BLOCKS)
EACH = 20
"""Messages of one put in each block: so many go to one, if there are enough for all."""
COLUMNS = (
    "id,lane,number,bucket,body,attributes,origin,enqueued_at,due_at,due,first_delivered_at,visible_at,settled_at,"
    "deliveries,state,moved_to,kept_in"
)


class At:
    """A server at which it is so many minutes ago, or from now on. It remembers nothing of those before it."""

    def __init__(self, live: Live, minutes_ago: float, queue: str = "") -> None:
        then = WhileAgo()
        then.ago_ms = int(minutes_ago * MINUTE_MS)
        self.live, self.queue = live, queue
        self.store = StoreThen(live.store, then)
        self.engine = Engine(self.store, Identities(), then)
        live.run(self.engine.memory.glance_at_clock())

    def create(self, **settings: Any) -> str:
        name = f"bag-{Identities().fresh()[-12:]}"
        self.live.run(self.engine.create_queue(ACCOUNT, name, QueueSettings(kind=DATABAG, **settings)))
        return name

    def put(self, word: str, count: int = EACH * len(BLOCKS)) -> list[MessageId]:
        messages = [NewMessage(f"{word} {number}".encode(), f'["{word}"]') for number in range(count)]
        outcomes = self.live.run(self.engine.put(ACCOUNT, self.queue, messages))
        return [outcome for outcome in outcomes if isinstance(outcome, MessageId)]

    def receive(self, count: int, visibility_ms: int | None = None) -> list[Delivery]:
        (answer,) = self.live.run(self.engine.receive(ACCOUNT, self.queue, [Ask(count, visibility_ms)]))
        assert isinstance(answer, list)
        return answer

    def delete(self, some: list[MessageId]) -> set[str]:
        receipts = [str(each) for each in some]
        assert self.live.run(self.engine.ack(ACCOUNT, self.queue, receipts)) == [None] * len(some)
        return set(receipts)

    def step(self) -> None:
        """Seals what has been open for ten minutes and has deletes, finishes what can be, and drops what may go."""
        self.live.run(self.engine.step(ACCOUNT, self.queue))

    def seal(self, some: list[MessageId]) -> None:
        """A step that seals the epochs of these. In each something is deleted for it, which never was."""
        never = {block_of(each): MessageId(0, each.number ^ 1) for each in some}
        assert not set(never.values()) & set(some)
        self.delete(list(never.values()))
        self.step()


def block_of(message: MessageId) -> int:
    return ids.block_of(ids.slice_of(message.number))


def strings(some: list[MessageId]) -> set[str]:
    return set(map(str, some))


@dataclass
class Story:
    """A databag in an hour of its life: three epochs of each block, of which some are finished."""

    queue: str
    put: dict[str, list[MessageId]]
    deleted: set[str] = field(default_factory=set)
    in_flight: set[str] = field(default_factory=set)

    @property
    def everything(self) -> set[str]:
        return {str(each) for some in self.put.values() for each in some}


@pytest.fixture(scope="module")
def story(live: Live) -> Story:
    queue = At(live, 60).create(retention_ms=50 * MINUTE_MS, visibility_timeout_ms=20 * MINUTE_MS)
    old = At(live, 60, queue).put("old")
    At(live, 49, queue).seal(old)
    middle = At(live, 30, queue).put("middle")
    told = Story(queue, {"old": old, "middle": middle})
    told.deleted |= At(live, 25, queue).delete([each for each in old if block_of(each) < 4])
    told.deleted |= At(live, 25, queue).delete([each for each in middle if block_of(each) < 8])
    # Of blocks 0 to 3 epoch 0 is finished, of 0 to 7 epoch 1.
    At(live, 15, queue).seal(middle)
    told.put["new"] = At(live, 2, queue).put("new")
    # A lock that is over, and one that holds.
    assert At(live, 1, queue).receive(5, 10_000)
    given = At(live, 0, queue).receive(7)
    told.in_flight = {str(each.id) for each in given[:5]}
    told.deleted |= At(live, 0, queue).delete([each.id for each in given[5:]])
    return told


def states(rows: list[Row]) -> dict[str, str]:
    assert len({row.id for row in rows}) == len(rows), "each once"
    return {row.id: row.state for row in rows}


def test_every_message_is_there_once_with_what_became_of_it(spark: SparkSession, live: Live, story: Story) -> None:
    rows = table(spark, live, story.queue, columns=COLUMNS).collect()
    found = states(rows)
    assert set(found) == story.everything
    expired = strings(story.put["old"]) - story.deleted
    wanted = dict.fromkeys(story.everything, "waiting") | dict.fromkeys(expired, "expired")
    wanted |= dict.fromkeys(story.in_flight, "in flight") | dict.fromkeys(story.deleted, "acked")
    assert found == wanted and len(story.in_flight) == 5

    by_id = {row.id: row for row in rows}
    first = story.put["middle"][0]
    one = by_id[str(first)]
    assert (one.number, one.lane, bytes(one.body), one.attributes, one.kept_in) == (
        first.number, 0, b"middle 0", '["middle"]', "queue"
    )
    assert one.bucket == 1 * len(BLOCKS) + block_of(first)
    assert 25 < (now() - one.enqueued_at).total_seconds() / 60 < 40
    for row in rows:
        assert (row.deliveries, row.due_at, row.due, row.first_delivered_at, row.moved_to) == (None,) * 5
        assert (row.settled_at is not None) == (row.state == "acked")
        assert row.visible_at is None or row.state in ("waiting", "in flight")
    # Who waits in a partition that has served waits as long as those who were given.
    assert all(by_id[each].visible_at > now() for each in story.in_flight)
    (until,) = {row.visible_at for row in rows if row.visible_at is not None}
    assert 15 < (until - now()).total_seconds() / 60 < 20
    behind = {row.number >> 51 for row in rows if row.state == "waiting" and row.visible_at is not None}
    assert {slice_ // (limits.BAG_SLICES // 64) for slice_ in behind} <= {
        (by_id[each].number >> 51) // (limits.BAG_SLICES // 64) for each in story.in_flight | story.deleted
    }


def now() -> datetime:
    return datetime.fromtimestamp(SystemClock().now().wall_ms / 1000, UTC).replace(tzinfo=None)


def test_filters_choose_the_epochs_that_are_read(spark: SparkSession, live: Live, story: Story) -> None:
    frame = table(spark, live, story.queue, columns="id,number,bucket,state,lane")
    whole = len(story.everything)
    assert rows_scanned(frame) == whole
    one, other = str(story.put["middle"][3]), str(story.put["new"][17])
    assert rows_scanned(frame.where(f"id = '{one}'")) == 1
    both = frame.where(f"id in ('{one}', '{other}', 'none', '0-7')")
    assert {row.id for row in both.collect()} == {one, other}
    assert rows_scanned(both) == 2
    # Finished are epoch 0 of blocks 0 to 3, and epoch 1 of blocks 0 to 7.
    assert rows_scanned(frame.where("state = 'waiting'")) == whole - 12 * EACH


def test_what_a_filter_leaves_is_all_that_is_planned(live: Live, story: Story) -> None:
    def pieces(*filters: Filter) -> list[Piece]:
        reader = FilteredReader(read_options(live, story.queue))
        reader.pushFilters(list(filters))
        return [piece for partition in reader.partitions() for piece in of_bag(partition).pieces]

    def epochs(*filters: Filter) -> set[tuple[int, int]]:
        return {(piece.block, piece.epoch) for piece in pieces(*filters)}

    everywhere = {(block, epoch) for block in BLOCKS for epoch in range(3)}
    assert len(pieces()) == len(everywhere) and epochs() == everywhere
    message = story.put["middle"][0]
    block, number = block_of(message), message.number
    for by_id in (EqualTo(("id",), str(message)), EqualNullSafe(("number",), number), In(("number",), (number, None))):
        assert pieces(by_id) == [Piece(block, 1, number, number)]
    assert pieces(EqualTo(("id",), "1-7"), EqualTo(("lane",), 0)) == []
    assert pieces(EqualTo(("number",), -1)) == pieces(EqualNullSafe(("number",), None)) == []
    assert epochs(EqualTo(("bucket",), 2 * len(BLOCKS) + 5)) == {(5, 2)}
    assert epochs(LessThan(("bucket",), len(BLOCKS))) == {(each, 0) for each in BLOCKS}
    upper = [piece for piece in pieces(GreaterThanOrEqual(("number",), number)) if piece.block == block]
    assert [piece.first for piece in upper] == [number] * 3
    assert {each for each, _ in epochs(GreaterThanOrEqual(("number",), number))} == set(range(block, len(BLOCKS)))
    finished = {(each, 0) for each in range(4)} | {(each, 1) for each in range(8)}
    assert epochs(In(("state",), ("waiting", "in flight"))) == everywhere - finished
    assert epochs(EqualTo(("state",), "purged")) == finished
    assert epochs(EqualTo(("state",), "acked")) == everywhere
    assert epochs(EqualTo(("state",), "dead")) == epochs(EqualTo(("lane",), 1)) == set()


def of_bag(partition: InputPartition) -> BagPartition:
    assert isinstance(partition, BagPartition)
    return partition


def test_blocks_and_epochs_are_spread_over_tasks(live: Live, story: Story) -> None:
    def sizes(**options: str) -> list[int]:
        reader = QueueReader(read_options(live, story.queue, **options))
        return [len(of_bag(partition).pieces) for partition in reader.partitions()]

    assert sizes() == [24, 24]
    assert sizes(minPartitions="12") == [4] * 12
    assert sizes(maxBucketsPerPartition="5") == [5] * 9 + [3]
    assert sizes(minPartitions="1000") == [1] * 48


def test_what_was_purged_is_shown_as_long_as_it_is_kept(spark: SparkSession, live: Live) -> None:
    queue = At(live, 50).create(history_ms=60 * MINUTE_MS, retention_ms=20 * MINUTE_MS)
    expired = At(live, 50, queue).put("expired", 10)
    At(live, 25, queue).step()
    # These are past their retention as well by now; but they were not when they were purged.
    server = At(live, 24, queue)
    purged = server.put("purged", 40)
    assert server.receive(10)
    deleted = server.delete([purged[7], purged[8]])
    live.run(server.engine.purge(ACCOUNT, queue))
    kept = At(live, 4, queue).put("kept", 10)
    found = states(table(spark, live, queue, columns="id,state").collect())
    assert Counter(found.values()) == {"expired": 10, "purged": 38, "acked": 2, "waiting": 10}
    assert {each for each, state in found.items() if state == "purged"} == strings(purged) - deleted
    assert {each for each, state in found.items() if state == "expired"} == strings(expired)
    # What was finished goes when the history is over; what was put last is still there.
    At(live, -40, queue).step()
    assert {row.id for row in table(spark, live, queue, columns="id").collect()} == strings(kept)


def read_small(reader: QueueReader, partitions: list[InputPartition], columns: str) -> list[tuple[Any, ...]]:
    """In a process of its own, as a task does it, but by pages of few rows."""
    from angelhair.spark.reading import cassandra, sqlite

    sqlite.BATCH_ROWS = cassandra.PAGE_ROWS = 7
    batches: list[pa.RecordBatch] = [batch for partition in partitions for batch in reader.read(partition)]  # type: ignore[misc]
    return [tuple(row[name] for name in columns.split(",")) for batch in batches for row in batch.to_pylist()]


def without_drops(server: At) -> At:
    async def fails(partitions: Sequence[Partition]) -> list[StoreError | None]:
        return [Unavailable("half way")] * len(partitions)

    server.store.drop = fails  # type: ignore[assignment]
    return server


def test_what_is_dropped_between_plan_and_read_is_said_or_passed_over(live: Live) -> None:
    """R14: whoever reads sees an epoch whole, or that it is gone."""
    queue = At(live, 30).create(history_ms=0, dedup_window_ms=1_000)
    server = At(live, 30, queue)
    gone = server.put("gone")
    At(live, 15, queue).seal(gone)
    kept = At(live, 14, queue).put("kept")
    server.delete([each for each in gone if block_of(each) != 3])
    strict, lenient = (
        QueueReader(read_options(live, queue, minPartitions="1", columns="number,state", failOnDataLoss=fails))
        for fails in ("true", "false")
    )
    (partition,) = strict.partitions()
    assert len(of_bag(partition).pieces) == 2 * len(BLOCKS)
    before = elsewhere(read_small, strict, [partition], "number,state")
    assert len(before) == 2 * EACH * len(BLOCKS)
    assert Counter(state for _, state in before) == {"acked": EACH * 15, "waiting": EACH * 17}
    At(live, 13, queue).step()
    with pytest.raises(Unavailable, match="half way"):
        without_drops(At(live, 12, queue)).step()
    # The rows are there still; but nobody can tell for how long.
    with pytest.raises(DataLost, match="epoch 0 of block 0 was dropped before it was read"):
        elsewhere(read_small, strict, [partition], "number,state")
    At(live, 11, queue).step()
    left = [each for each in gone if block_of(each) == 3]
    after = elsewhere(read_small, lenient, [partition], "number,state")
    assert sorted(after) == sorted((each.number, "waiting") for each in [*left, *kept])
    # A read that is planned now begins with what there is.
    (planned_now,) = strict.partitions()
    assert len(of_bag(planned_now).pieces) == len(BLOCKS) + 1


def test_an_empty_databag_is_an_empty_table(spark: SparkSession, live: Live) -> None:
    queue = At(live, 0).create()
    assert table(spark, live, queue).collect() == []


@pytest.mark.parametrize(
    ("option", "value"), [("start", "latest"), ("end", '{"0": 7}'), ("isolation", "final"), ("lake", "lake")]
)
def test_options_for_which_a_databag_has_no_use_are_refused(live: Live, option: str, value: str) -> None:
    queue = At(live, 0).create()
    with pytest.raises(InvalidRequest, match=f"{option}.*databag"):
        QueueReader(read_options(live, queue, **{option: value})).partitions()


def test_a_stream_of_a_databag_is_refused_with_what_to_do(live: Live) -> None:
    queue = At(live, 0).create()
    stream = QueueStreamReader(read_options(live, queue, streaming=True))
    with pytest.raises(InvalidRequest, match=rf"{queue} is a databag, which no stream.*by a batch"):
        stream.initialOffset()
    stream.stop()


def test_writing_to_a_databag_is_refused_with_what_to_do(live: Live) -> None:
    queue = At(live, 0).create()
    rows = pa.RecordBatch.from_pydict({"body": [b"one"]})
    with pytest.raises(InvalidRequest, match=r"'databag'.*put.*by a client"):
        put_all(WriteOptions.of({**lowered(live.options), "queue": queue}), "writer", iter([rows]))
    assert At(live, 0, queue).receive(1) == []


def lowered(options: dict[str, str]) -> dict[str, str]:
    """As Spark hands them over."""
    return {name.lower(): value for name, value in options.items()}


def test_of_locks_that_overlap_the_later_serving_counts() -> None:
    def lock(first: int, last: int, serving: int, served_at: int, *given: int) -> LockRow:
        return LockRow(first, last, serving, served_at, 100, b"".join(each.to_bytes(8) for each in given))

    low = ids.BLOCK_SLICES
    in_first, in_second, in_third = (ids.first_of(low + slice_) + 5 for slice_ in (0, 1, 2))
    locks = [
        lock(low, low + 1, 8, 1_000, in_first, in_second),
        # Served later, and over earlier.
        lock(low + 1, low + 1, 9, 950, in_second),
        lock(low + 2, low + 9, 3, 1_010, in_third),
    ]
    found = Found(Piece.whole(1, 0), pa.RecordBatch.from_pydict({}), None, locks)
    assert _holding(found, 1_060).tolist()[:11] == [0, -1, *[2] * 8, -1]
    assert sorted(_given(found, 1_060).tolist()) == [in_first, in_third]
    assert _given(found, 1_110).tolist() == [] == _given(found._replace(locks=()), 0).tolist()
