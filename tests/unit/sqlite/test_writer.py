"""The writer: many calls in one commit, mistakes kept apart, the log kept short, expired rows taken away."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from angelhair.clock import Moment
from angelhair.engine.schema import KEYS, TABLES
from angelhair.engine.store import APPLIED, Change, Partition, Row, RowChange, Span, Write
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.stores.sqlite.store import PAGE_ROWS
from angelhair.stores.sqlite.transactions import SWEEP_ROWS
from angelhair.stores.sqlite.writing import PATIENT_CHECKPOINTS
from tests.unit.sqlite.disks import RecordingDisk
from tests.unit.sqlite.tools import GUARDED, PLAIN, claim, keys, one, opened


def syncs(disk: RecordingDisk) -> int:
    return sum(event.kind == "sync" and event.file == "wal" for event in disk.events)


def test_whoever_waits_shares_one_commit(tmp_path: Path) -> None:
    disk = RecordingDisk()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            disk.recording = True
            await asyncio.gather(
                *(store.write([one(key)]) for key in range(100)), *(store.change([claim(key)]) for key in range(100))
            )
            assert syncs(disk) == 1
            assert await keys(store) == await keys(store, GUARDED) == list(range(100))

    asyncio.run(story())


def test_a_refused_change_costs_no_sync(tmp_path: Path) -> None:
    disk = RecordingDisk()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            assert await store.change([claim(1)]) == [APPLIED]
            disk.recording = True
            for _ in range(5):
                (outcome,) = await store.change([claim(1, 9)])
                assert outcome != APPLIED
            assert syncs(disk) == 0

    asyncio.run(story())


def test_a_mistake_reaches_the_call_that_made_it_and_no_other(tmp_path: Path) -> None:
    mistakes = [
        Write(PLAIN, [Row(1, {"no such column": 1})]),
        Write(PLAIN, [Row(2, {"enqueued_at": 2**63})]),
        Write(PLAIN, [Row(3, {"enqueued_at": "text"})]),
        Write(PLAIN, [Row("text", {"enqueued_at": 3})]),
        Write(PLAIN, [Row(4, {"attributes": "\ud800"})]),
        Write(PLAIN, [Row(5, {"enqueued_at": object()})]),  # type: ignore[dict-item]
    ]

    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            outcomes = await asyncio.gather(
                *(call for key, mistake in enumerate(mistakes, 10)
                  for call in (store.write([mistake]), store.write([one(key)]))),
                store.change([claim(1)]),
                return_exceptions=True,
            )
            for number in range(len(mistakes)):
                assert isinstance(outcomes[2 * number], ValueError | TypeError | OverflowError), mistakes[number]
                assert outcomes[2 * number + 1] == [None]
            assert outcomes[-1] == [APPLIED]
            assert await keys(store) == [10 + number for number in range(len(mistakes))]

    asyncio.run(story())


def test_reading_a_column_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            with pytest.raises(ValueError, match="nonsense"):
                await store.read([Span(PLAIN, columns=("nonsense",))])
            with pytest.raises(ValueError, match="nonsense"):
                await store.read([Span(GUARDED, columns=("nonsense",))])
            assert await store.change([claim(1)]) == [APPLIED]
            assert await keys(store, GUARDED) == [1]

    asyncio.run(story())


@pytest.mark.parametrize(("beside_a_reader", "most"), [(False, 2), (True, PATIENT_CHECKPOINTS + 1)])
def test_the_log_stays_bounded(tmp_path: Path, beside_a_reader: bool, most: int) -> None:
    """Fifty times the bound passes through. Alone the log never grows to twice its bound; a checkpoint beside a reader
    may stop short, until the writer insists (`writing.checkpoint`)."""
    bound_pages = 40

    async def story() -> None:
        async with opened(tmp_path / "a.db", checkpoint_pages=bound_pages) as store:
            longest_bytes = 0
            for key in range(1000):
                assert await store.write([one(key, 4_000)]) == [None]
                if beside_a_reader:
                    await store.read([Span(PLAIN, key, key)])
                longest_bytes = max(longest_bytes, (tmp_path / "a.db-wal").stat().st_size)
            assert longest_bytes < most * bound_pages * 4096
            assert await keys(store) == list(range(1000))

    asyncio.run(story())


def test_a_reader_that_never_ends_does_not_stop_the_writer(tmp_path: Path) -> None:
    """It keeps the log from starting over, so the log grows meanwhile and is short again afterwards."""
    bound_pages = 40

    async def story() -> None:
        async with opened(tmp_path / "a.db", checkpoint_pages=bound_pages, busy_timeout_ms=50) as store:
            assert await store.write([one(0)]) == [None]
            reader = apsw.Connection(str(tmp_path / "a.db"))
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM bodies").get == 1
            for key in range(1, 300):
                assert await store.write([one(key, 4_000)]) == [None]
            assert reader.execute("SELECT count(*) FROM bodies").get == 1
            reader.close()
            for key in range(300, 600):
                assert await store.write([one(key, 4_000)]) == [None]
            connection = store._writer._writing._connection
            assert connection is not None
            assert store._writer._writing._log_pages < 4 * bound_pages
            assert await keys(store) == list(range(600))

    asyncio.run(story())


class SettableClock:
    def __init__(self) -> None:
        self.wall_ms = 1_000_000

    def now(self) -> Moment:
        return Moment(self.wall_ms, self.wall_ms)


def stored_rows(path: Path) -> int:
    connection = apsw.Connection(str(path))
    try:
        return int(str(connection.execute("SELECT count(*) FROM keys").get))
    finally:
        connection.close()


def test_expired_rows_are_swept_in_small_bites(tmp_path: Path) -> None:
    clock = SettableClock()
    path = tmp_path / "a.db"
    partition = Partition(KEYS, "p")
    count = 2 * SWEEP_ROWS + 10

    async def story() -> None:
        async with opened(path, clock=clock) as store:
            mortal = [RowChange(f"{number}", {}, {"status": "x"}) for number in range(count)]
            assert await store.change([Change(partition, mortal, ttl_seconds=10)]) == [APPLIED]
            assert await store.change([Change(partition, [RowChange("stays", {}, {"status": "x"})])]) == [APPLIED]
            clock.wall_ms += 9_999
            assert len(await keys(store, partition)) == count + 1
            clock.wall_ms += 1
            assert await keys(store, partition) == ["stays"]
            left = [stored_rows(path)]
            for key in range(4):
                assert await store.write([one(key)]) == [None]
                left.append(stored_rows(path))
            assert left == [count + 1, SWEEP_ROWS + 11, 11, 1, 1]

    asyncio.run(story())


def test_a_row_in_the_place_of_an_expired_one_inherits_nothing_from_it(tmp_path: Path) -> None:
    """In the very transaction that is the first since it expired: nothing has swept it away yet."""
    clock = SettableClock()

    async def story() -> None:
        async with opened(tmp_path / "a.db", clock=clock) as store:
            old = Write(PLAIN, [Row(1, {"body": b"old", "enqueued_at": 1})], ttl_seconds=5)
            assert await store.write([old]) == [None]
            guarded = Change(GUARDED, [RowChange(1, {}, {"claim": "old", "delivery": 1})], ttl_seconds=5)
            assert await store.change([guarded]) == [APPLIED]
            clock.wall_ms += 5_000
            await asyncio.gather(
                store.write([Write(PLAIN, [Row(1, {"attributes": "new"})])]),
                store.change([Change(GUARDED, [RowChange(1, {"claim": None}, {"revision": 1})])]),
            )
            plain, states = await store.read([Span(PLAIN), Span(GUARDED)])
            for found, expected in ((plain, {"attributes": "new"}), (states, {"revision": 1})):
                (row,) = found.rows
                assert {column: value for column, value in row.values.items() if value is not None} == expected

    asyncio.run(story())


def test_an_error_that_nobody_foresaw_is_an_unknown_outcome_and_the_thread_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Here it comes out of COMMIT, where SQLite calls back into Python; the commit itself has happened."""

    def unforeseen(*_: object) -> int:
        raise ZeroDivisionError

    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            assert await store.write([one(1)]) == [None]
            connection = store._writer._writing._connection
            assert connection is not None
            connection.set_wal_hook(unforeseen)
            assert [type(outcome) for outcome in await store.write([one(2)])] == [OutcomeUnknown]
            assert await store.write([one(3)]) == [None]
            assert await keys(store) == [1, 2, 3]

    asyncio.run(story())
    assert "does not know" in caplog.text


def test_a_clock_that_was_set_back_does_not_stop_the_sweep(tmp_path: Path) -> None:
    clock = SettableClock()
    path = tmp_path / "a.db"
    partition = Partition(KEYS, "p")

    async def story() -> None:
        async with opened(path, clock=clock) as store:
            clock.wall_ms = 9_000_000
            assert await store.write([one(1)]) == [None]
            clock.wall_ms = 1_000_000
            mortal = Change(partition, [RowChange("x", {}, {"status": "x"})], ttl_seconds=1)
            assert await store.change([mortal]) == [APPLIED]
            clock.wall_ms += 5_000
            assert await store.write([one(2)]) == [None]
            assert stored_rows(path) == 0

    asyncio.run(story())


def test_long_reads_give_way_and_are_complete(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            count = 3 * PAGE_ROWS
            rows = [Row(key, {"enqueued_at": key}) for key in range(count)]
            assert await store.write([Write(PLAIN, rows)]) == [None]
            turns = 0

            async def others() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            background = asyncio.create_task(others())
            assert await keys(store) == list(range(count))
            assert turns >= 3
            for limit in (PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1, 2 * PAGE_ROWS, count, count + 1):
                (found,) = await store.read([Span(PLAIN, limit=limit)])
                assert [row.key for row in found.rows] == list(range(min(limit, count)))
                assert found.more == (limit <= count)
            background.cancel()

    asyncio.run(story())


def test_a_closed_store_is_unavailable_and_finishes_what_it_had_taken_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            under_way = asyncio.gather(*(store.write([one(key)]) for key in range(10)))
            await asyncio.sleep(0)
            await store.close()
            assert await under_way == [[None]] * 10
            for attempt in (store.write([one(11)]), store.change([claim(1)]), store.read([Span(PLAIN)])):
                with pytest.raises(Unavailable, match="closed"):
                    await attempt
            await store.close()
        async with opened(tmp_path / "a.db") as store:
            assert await keys(store) == list(range(10))

    asyncio.run(story())


def test_a_cancelled_call_disturbs_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            tasks = [asyncio.create_task(store.write([one(key)])) for key in range(10)]
            await asyncio.sleep(0)
            tasks[3].cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [outcome for outcome in outcomes if outcome == [None]] == [[None]] * 9
            assert isinstance(outcomes[3], asyncio.CancelledError)
            assert set(await keys(store)) | {3} == set(range(10))

    asyncio.run(story())


def test_every_table_of_the_engine_is_laid_out(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db") as store:
            found = await store.read([Span(Partition(table, "nowhere")) for table in TABLES])
            assert [list(slice_.rows) for slice_ in found] == [[]] * len(TABLES)

    asyncio.run(story())
