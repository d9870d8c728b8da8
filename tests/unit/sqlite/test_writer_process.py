"""The writer in a process of its own: it dies alone and is replaced, ends with its server, and keeps mistakes apart."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from angelhair.engine.store import APPLIED, Refused, Row, Write
from angelhair.errors import OutcomeUnknown, StoreRefused, Unavailable
from angelhair.stores.sqlite import SqliteStore
from angelhair.stores.sqlite.wire import Frames, framed
from tests.unit.sqlite.killing import integrity_complaints
from tests.unit.sqlite.tools import GUARDED, PLAIN, claim, keys, one, opened


def process_id(store: SqliteStore) -> int:
    child = store._writer._child  # type: ignore[attr-defined]
    assert child is not None
    pid: int = child._process.pid
    return pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_writes_what_it_is_told_and_ends_with_the_store(tmp_path: Path) -> None:
    async def story() -> int:
        async with opened(tmp_path / "a.db", writer="process") as store:
            assert await store.write([one(1), one(2)]) == [None, None]
            assert await store.change([claim(1)]) == [APPLIED]
            (refused,) = await store.change([claim(1)])
            assert isinstance(refused, Refused)
            assert refused.rows[1]["delivery"] == 1
            assert await store.drop([GUARDED]) == [None]
            assert await keys(store) == [1, 2]
            assert await keys(store, GUARDED) == []
            return process_id(store)

    assert not is_running(asyncio.run(story()))
    # Nothing is left of the log: the writer closed the file in order, and last.
    assert not (tmp_path / "a.db-wal").exists()


def test_when_it_is_killed_what_was_under_way_is_unknown_and_the_next_is_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db", writer="process", busy_timeout_ms=60_000) as store:
            assert await store.write([one(1)]) == [None]
            holder = apsw.Connection(str(tmp_path / "a.db"))
            holder.execute("BEGIN IMMEDIATE")
            # It waits for the lock, so it is certainly under way.
            waiting = asyncio.create_task(store.write([one(2)]))
            await asyncio.sleep(0.05)
            os.kill(process_id(store), signal.SIGKILL)
            assert [type(outcome) for outcome in await waiting] == [OutcomeUnknown]
            holder.execute("ROLLBACK")
            holder.close()
            # At once: whatever comes while no writer is there waits for the next one.
            assert await store.write([one(3)]) == [None]
            assert await keys(store) == [1, 3]

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert "another starts" in caplog.text
    assert integrity_complaints(tmp_path / "a.db") == []


def test_one_that_cannot_start_again_is_unavailable_and_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db", writer="process", busy_timeout_ms=50) as store:
            assert await store.write([one(1)]) == [None]
            os.rename(tmp_path / "a.db", tmp_path / "away.db")
            (tmp_path / "a.db").mkdir()
            os.kill(process_id(store), signal.SIGKILL)
            outcomes: list[object] = []
            while not any(isinstance(outcome, Unavailable) for outcome in outcomes):
                outcomes += await store.write([one(2)])
            assert None not in outcomes
            (tmp_path / "a.db").rmdir()
            os.rename(tmp_path / "away.db", tmp_path / "a.db")
            assert await store.write([one(3)]) == [None]

    asyncio.run(story())


def test_it_ends_when_its_server_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.unit.sqlite.test_writer_process", str(tmp_path / "a.db")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        writer = int(server.stdout.readline())
        # A terminal's Ctrl-C reaches both; the writer leaves only when its server has gone.
        os.kill(writer, signal.SIGINT)
        os.kill(writer, signal.SIGTERM)
        assert server.stdout.readline() == b"written\n"
        server.kill()
    while is_running(writer):
        os.sched_yield()
    assert integrity_complaints(tmp_path / "a.db") == []


async def _serve(path: str) -> None:
    async with opened(Path(path), writer="process") as store:
        print(process_id(store), flush=True)
        await asyncio.sleep(0.2)
        assert await store.write([one(1)]) == [None]
        print("written", flush=True)
        await asyncio.Event().wait()


def test_one_calls_mistake_is_not_anothers(tmp_path: Path) -> None:
    def body(value: object) -> Write:
        return Write(PLAIN, [Row(9, {"body": value, "enqueued_at": 1})])  # type: ignore[dict-item]

    async def story() -> None:
        async with opened(tmp_path / "a.db", writer="process") as store:
            mistakes = [body("text, not bytes"), body(object()), Write(PLAIN, [Row(9, {"enqueued_at": 2**70})])]
            results = await asyncio.gather(
                store.write([one(1)]), *(store.write([mistake]) for mistake in mistakes), store.write([one(2)]),
                return_exceptions=True,
            )
            assert results[0] == [None]
            assert results[-1] == [None]
            assert all(isinstance(result, ValueError | TypeError | OverflowError) for result in results[1:-1]), results
            assert await keys(store) == [1, 2]

    asyncio.run(story())


def test_a_large_body_crosses_whole(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db", writer="process") as store:
            many = [store.write([one(key, 3_000_000)]) for key in range(4)]
            assert await asyncio.gather(*many) == [[None]] * 4
            assert await keys(store) == [0, 1, 2, 3]

    asyncio.run(story())


def test_what_cannot_be_opened_is_said_as_it_is_by_a_thread(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_bytes(b"certainly no database, but long enough to look like one" * 40)

    async def story(path: Path, writer: str) -> str:
        with pytest.raises(StoreRefused) as refusal:
            async with opened(path, writer=writer):
                raise AssertionError("it opened")
        return str(refusal.value)

    for path in (tmp_path / "other.db", tmp_path / "no" / "such" / "folder" / "a.db"):
        assert asyncio.run(story(path, "process")) == asyncio.run(story(path, "thread"))


def test_a_clock_of_ones_own_is_refused(tmp_path: Path) -> None:
    class Standing:
        def now(self) -> None:
            raise AssertionError("nobody asks")

    async def story() -> None:
        with pytest.raises(ValueError, match="clock"):
            async with opened(tmp_path / "a.db", writer="process", clock=Standing()):
                raise AssertionError("it opened")

    asyncio.run(story())


def test_frames_come_whole_however_they_arrive() -> None:
    payloads = [b"", b"one", b"x" * 70_000]
    stream = b"".join(map(framed, payloads))
    for step in (1, 3, 4, 5, 4_096, len(stream)):
        frames = Frames()
        found = [frame for start in range(0, len(stream), step) for frame in frames.feed(stream[start : start + step])]
        assert found == payloads


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
