"""Several processes on one file: they take turns, and each sees what the others confirmed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import apsw

from angelhair.engine.store import APPLIED, Change, Refused, RowChange, Span
from angelhair.errors import Unavailable
from angelhair.stores.sqlite import open_store
from tests.unit.sqlite.killing import integrity_complaints
from tests.unit.sqlite.tools import GUARDED, claim, keys, one, opened

PROCESSES = 3
ROUNDS = 60


def test_processes_contend_for_one_row_and_none_wins_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.unit.sqlite.test_processes", str(path)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        for _ in range(PROCESSES)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
    for child in children:
        # Now all at once, so that they also race to lay the file out.
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    said = [child.communicate()[0].decode() for child in children]
    assert [child.returncode for child in children] == [0] * PROCESSES
    wins = [int(word) for text in said for word in text.split()]
    assert sorted(wins) == list(range(1, PROCESSES * ROUNDS + 1))

    async def story() -> None:
        async with opened(path) as store:
            (found,) = await store.read([Span(GUARDED)])
            assert [row.values.get("delivery") for row in found.rows] == [PROCESSES * ROUNDS]

    asyncio.run(story())
    assert integrity_complaints(path) == []


async def _contend(path: str) -> None:
    store = await open_store(path)
    version: int | None = None
    wins = 0
    while wins < ROUNDS:
        following = (version or 0) + 1
        change = Change(GUARDED, [RowChange(1, {"delivery": version}, {"delivery": following})])
        (outcome,) = await store.change([change])
        if outcome == APPLIED:
            print(following)
            version, wins = following, wins + 1
        else:
            assert isinstance(outcome, Refused)
            present = outcome.rows[1]["delivery"]
            assert isinstance(present, int)
            assert present >= following, "a refusal showed an older row than the one that refused"
            version = present
        await asyncio.sleep(0.001)
    await store.close()


def test_two_stores_see_each_others_confirmed_writes_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db") as first, opened(tmp_path / "a.db") as second:
            for key in range(0, 40, 2):
                assert await first.write([one(key)]) == [None]
                assert (await keys(second))[-1] == key
                assert await second.write([one(key + 1)]) == [None]
                assert (await keys(first))[-1] == key + 1

    asyncio.run(story())


def test_a_file_that_somebody_holds_is_unavailable_until_it_is_let_go(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.db", busy_timeout_ms=50) as store:
            assert await store.write([one(1)]) == [None]
            holder = apsw.Connection(str(tmp_path / "a.db"))
            holder.execute("BEGIN IMMEDIATE")
            assert [type(outcome) for outcome in await store.write([one(2)])] == [Unavailable]
            assert [type(outcome) for outcome in await store.change([claim(2)])] == [Unavailable]
            # Reading never waits for a writer.
            assert await keys(store) == [1]
            holder.execute("ROLLBACK")
            holder.close()
            assert await keys(store) == [1]
            assert await keys(store, GUARDED) == []
            assert await store.write([one(3)]) == [None]

    asyncio.run(story())


if __name__ == "__main__":
    print("here", flush=True)
    sys.stdin.readline()
    asyncio.run(_contend(sys.argv[1]))
