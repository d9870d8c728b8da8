"""A disk that fails: nothing is claimed that may be gone, and the store goes on when the disk does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from angelhair.engine.store import APPLIED
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.stores.sqlite.writing import FULL_QUIET_MS
from tests.queues import Dial, ServerClock
from tests.unit.sqlite.disks import FailingDisk
from tests.unit.sqlite.killing import integrity_complaints
from tests.unit.sqlite.tools import GUARDED, claim, keys, one, opened


def test_a_failed_fsync_is_an_unknown_outcome_and_the_store_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            assert await store.write([one(1)]) == [None]
            assert await store.change([claim(1)]) == [APPLIED]
            before = store._writer._writing._connection
            disk.fail("sync", "wal", apsw.IOError, apsw.SQLITE_IOERR_FSYNC)
            written, changed, refused = await asyncio.gather(
                store.write([one(2), one(3)]), store.change([claim(2)]), store.change([claim(1, 7)])
            )
            assert disk.failures == 1
            assert [type(outcome) for outcome in (*written, *changed)] == [OutcomeUnknown] * 3
            # A change that was found to be refused did not happen, whatever became of the others.
            assert [type(outcome) for outcome in refused] == [Unavailable]
            assert "FSYNC" in str(written[0])
            # A new connection, and everything works again. Rows 2 and 3 may be there or not.
            assert await store.write([one(4)]) == [None]
            assert store._writer._writing._connection is not before
            assert set(await keys(store)) - {2, 3} == {1, 4}
            # Repeating what is unknown under the same key settles it.
            assert await store.write([one(2), one(3)]) == [None, None]
        async with opened(tmp_path / "a.db") as store:
            assert await keys(store) == [1, 2, 3, 4]
            assert set(await keys(store, GUARDED)) - {2} == {1}

    asyncio.run(story())
    assert integrity_complaints(tmp_path / "a.db") == []
    assert "closing the connection" in caplog.text


@pytest.mark.parametrize("times", [1, 3])
def test_writes_to_a_full_disk_did_not_happen(tmp_path: Path, times: int) -> None:
    disk = FailingDisk()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            assert await store.write([one(1)]) == [None]
            for attempt in range(times):
                disk.fail("write", "wal", apsw.FullError, apsw.SQLITE_FULL)
                outcomes = await store.write([one(10 + attempt, 50_000)])
                assert [type(outcome) for outcome in outcomes] == [Unavailable]
                assert "FULL" in str(outcomes[0])
            assert disk.failures == times
            assert await keys(store) == [1]
            assert await store.write([one(2)]) == [None]
        async with opened(tmp_path / "a.db") as store:
            assert await keys(store) == [1, 2]

    asyncio.run(story())
    assert integrity_complaints(tmp_path / "a.db") == []


def test_a_full_disk_is_in_the_log_once_and_once_when_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Small commits that find room between large ones do not end it: else there would be two lines for each."""
    disk, dial = FailingDisk(), Dial()

    def said() -> list[str]:
        return [record.getMessage().partition(":")[0] for record in caplog.records]

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name, clock=ServerClock(dial)) as store:
            for attempt in range(3):
                assert said() == ["the disk is full"] * min(attempt, 1)
                disk.fail("write", "wal", apsw.FullError, apsw.SQLITE_FULL)
                assert [type(outcome) for outcome in await store.write([one(attempt, 50_000)])] == [Unavailable]
                dial.wall_ms += FULL_QUIET_MS - 1
                assert await store.write([one(10 + attempt)]) == [None]
            assert said() == ["the disk is full"]
            dial.wall_ms += 1
            for attempt in range(2):
                assert await store.write([one(20 + attempt)]) == [None]
            assert said() == ["the disk is full", "the disk has space again"]

    asyncio.run(story())


def test_a_full_disk_that_fills_at_any_write_of_a_commit_leaves_no_trace_after_a_kill(tmp_path: Path) -> None:
    """What makes FULL an `Unavailable`: the commit mark is the last write, so any write that failed leaves none.

    The files are copied at the moment of the failure, as they would be found after a kill, and recovered.
    """
    disk = FailingDisk()
    writes_of_a_commit = 40

    async def story() -> int:
        failed = 0
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            assert await store.write([one(0)]) == [None]
            for nth in range(writes_of_a_commit):
                disk.fail_at("write", "wal", nth, apsw.FullError, apsw.SQLITE_FULL)
                (outcome,) = await store.write([one(1, 50_000)])
                disk.heal()
                if outcome is None:
                    break  # the commit has fewer writes than that
                failed += 1
                assert type(outcome) is Unavailable
                for ending in ("", "-wal"):
                    copy = tmp_path / f"copy-{nth}.db{ending}"
                    copy.write_bytes((tmp_path / f"a.db{ending}").read_bytes())
                async with opened(tmp_path / f"copy-{nth}.db") as found:
                    assert await keys(found) == [0], f"write {nth}"
        return failed

    assert asyncio.run(story()) > 10


def test_an_error_before_the_commit_did_not_happen(tmp_path: Path) -> None:
    """A transaction that outgrows the cache spills into the log before its commit; here that fails."""
    disk = FailingDisk()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            assert await store.write([one(1)]) == [None]
            connection = store._writer._writing._connection
            assert connection is not None
            connection.pragma("cache_size", 10)
            disk.fail("write", "wal", apsw.IOError, apsw.SQLITE_IOERR_WRITE)
            outcomes = await store.write([one(key, 9_000) for key in range(100, 200)])
            assert disk.failures == 1
            assert {type(outcome) for outcome in outcomes} == {Unavailable}
            assert await store.write([one(2)]) == [None]
            assert await keys(store) == [1, 2]

    asyncio.run(story())


def test_a_failed_checkpoint_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = FailingDisk()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name, checkpoint_pages=10) as store:
            disk.fail("sync", "db", apsw.IOError, apsw.SQLITE_IOERR_FSYNC)
            for key in range(60):
                assert await store.write([one(key, 3_000)]) == [None]
            assert disk.failures == 1
            assert await keys(store) == list(range(60))
        async with opened(tmp_path / "a.db") as store:
            assert await keys(store) == list(range(60))

    asyncio.run(story())
    assert "the checkpoint failed" in caplog.text
    assert integrity_complaints(tmp_path / "a.db") == []


def test_while_the_file_cannot_be_opened_again_everything_is_unavailable(tmp_path: Path) -> None:
    disk = FailingDisk()

    async def story() -> None:
        async with opened(tmp_path / "a.db", vfs=disk.name) as store:
            assert await store.write([one(1)]) == [None]
            disk.fail("sync", "wal", apsw.IOError, apsw.SQLITE_IOERR_FSYNC)
            disk.refuse_to_open = True
            assert [type(outcome) for outcome in await store.write([one(2)])] == [OutcomeUnknown]
            assert [type(outcome) for outcome in await store.write([one(3)])] == [Unavailable]
            assert [type(outcome) for outcome in await store.change([claim(3)])] == [Unavailable]
            disk.refuse_to_open = False
            assert await store.write([one(4)]) == [None]
            assert set(await keys(store)) - {2} == {1, 4}

    asyncio.run(story())
