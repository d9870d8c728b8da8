"""The writer process under attack: killed between commit and answer, closed under load, outliving its server.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from angelhair.batching.batching import Batching
from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.engine.store import APPLIED, Refused
from angelhair.errors import Unavailable
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from angelhair.server.runtime import AsyncioRuntime
from angelhair.stores.sqlite import SqliteStore, open_store, process
from tests.unit.sqlite.tools import GUARDED, claim, keys, one, opened

DYING = """import sys, os; sys.path[:] = {path!r}
from angelhair.stores.sqlite import child
real = child._answer
def answer(server, writing, calls):
    if any(call.verb == "together" for call in calls) and os.path.exists("MARKER"):
        os.unlink("MARKER")
        writing.answer(calls)  # committed, and nobody hears of it
        os._exit(9)
    real(server, writing, calls)
child._answer = answer
child.main()"""


def child_of(store: SqliteStore) -> int:
    return store._writer._child._process.pid  # type: ignore[attr-defined]


async def drain(engine: Engine, empty: int = 3) -> list[bytes]:
    received: list[bytes] = []
    while empty:
        (found,) = await engine.receive("shop", "jobs", [Ask(100)])
        assert isinstance(found, list), found
        received += [one.body for one in found]
        empty -= not found
        if found:
            assert set(await engine.ack("shop", "jobs", [one.receipt for one in found])) == {None}
    return received


def test_death_between_commit_and_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A naive version puts again under new ids (twice delivered), or says "did not happen"."""
    marker = tmp_path / "die"
    monkeypatch.setattr(process, "_MAIN", DYING.replace("MARKER", str(marker)))

    async def story() -> None:
        store = await open_store(tmp_path / "a.db", writer="process")
        engine = Engine(store, RandomIdentities(), SystemClock())
        batching = Batching(engine, AsyncioRuntime())
        await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=7))
        await batching.put("shop", "jobs", [NewMessage(b"first")])
        for life in range(3):
            marker.touch()
            puts = [batching.put("shop", "jobs", [NewMessage(b"%d.%d" % (life, n))]) for n in range(20)]
            answers = await asyncio.gather(*puts)
            assert all(isinstance(answer, MessageId) for (answer,) in answers)
            assert len({answer for (answer,) in answers}) == 20
        received = await drain(engine)
        assert sorted(received) == sorted([b"first", *(b"%d.%d" % (life, n) for life in range(3) for n in range(20))])
        await store.close()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_cancelled_call_keeps_its_place(tmp_path: Path) -> None:
    """A naive version takes the job of a cancelled call out of the line: every later answer is somebody else's."""

    async def story() -> None:
        dice = random.Random(5)
        async with opened(tmp_path / "a.db", writer="process") as store:
            assert await store.change([claim(number) for number in range(0, 200, 2)]) == [APPLIED] * 100
            # Now even ones are refused and odd ones applied: an answer that shifts by one is seen at once.
            calls: dict[int, asyncio.Task[Any]] = {}
            for number in range(200):
                calls[number] = asyncio.create_task(store.change([claim(number)]))
                await asyncio.sleep(0)  # it is on its way
                if dice.random() < 0.3:
                    calls[dice.randrange(number + 1)].cancel()
            await asyncio.wait(calls.values())
            told = 0
            for number, call in calls.items():
                if not call.cancelled():
                    told += 1
                    assert isinstance(call.result()[0], Refused) == (number % 2 == 0), number
            assert told > 100
            # What was cancelled under way was done all the same.
            assert await keys(store, GUARDED) == list(range(200))

    asyncio.run(asyncio.wait_for(story(), 60))


def test_closed_under_load_and_killed_under_load(tmp_path: Path) -> None:
    """Every call is answered, and what was confirmed is in the file."""

    async def story(kill: bool, path: Path) -> None:
        store = await open_store(path, writer="process")
        confirmed: list[int] = []
        unavailable: list[int] = []

        async def write(number: int) -> None:
            try:
                (outcome,) = await store.write([one(number)])
            except Unavailable as error:
                outcome = error
            if outcome is None:
                confirmed.append(number)
            elif isinstance(outcome, Unavailable):
                unavailable.append(number)

        async def load(start: int) -> None:
            for number in range(start, start + 200):
                await write(number)

        loads = [asyncio.create_task(load(1_000 * lane)) for lane in range(20)]
        killed: set[int] = set()
        for _ in range(3):
            await asyncio.sleep(0.03)
            if kill:
                # One that was killed is named until the store has seen that it is gone.
                while store._writer._child is None or child_of(store) in killed:  # type: ignore[attr-defined]
                    await asyncio.sleep(0.01)
                killed.add(child_of(store))
                os.kill(child_of(store), signal.SIGKILL)
        assert len(killed) == (3 if kill else 0)
        await store.close()
        await asyncio.gather(*loads)
        async with opened(path) as again:
            there = set(await keys(again))
        assert set(confirmed) <= there, "confirmed and lost"
        assert not set(unavailable) & there, "said not to have happened, and is there"

    asyncio.run(asyncio.wait_for(story(False, tmp_path / "a.db"), 60))
    asyncio.run(asyncio.wait_for(story(True, tmp_path / "b.db"), 60))


SERVER = """
import asyncio, sys
from angelhair.batching.batching import Batching
from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.model import NewMessage, QueueSettings
from angelhair.identities import RandomIdentities
from angelhair.server.runtime import AsyncioRuntime
from angelhair.stores.sqlite import open_store

async def main():
    store = await open_store(sys.argv[1], writer="process")
    engine = Engine(store, RandomIdentities(), SystemClock())
    await engine.create_queue("shop", "jobs", QueueSettings(bucket_size=10))
    batching = Batching(engine, AsyncioRuntime())
    print(store._writer._child._process.pid, flush=True)
    async def put(lane):
        for number in range(100_000):
            body = b"old %d.%d" % (lane, number)
            (answer,) = await batching.put("shop", "jobs", [NewMessage(body)])
            print(body.decode(), flush=True)
    await asyncio.gather(*(put(lane) for lane in range(8)))
asyncio.run(main())
"""


def test_a_new_server_beside_the_old_ones_writer(tmp_path: Path) -> None:
    """The writer is stopped with calls in its socket, its server killed, another server works; then the writer goes on:
    it does what it was handed, beside the new server, and ends. Ids stay unique, nothing confirmed is lost."""
    path = tmp_path / "a.db"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SERVER, str(path)]
    old = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert old.stdout is not None
    writer = int(old.stdout.readline())
    confirmed = [old.stdout.readline().strip() for _ in range(50)]
    os.kill(writer, signal.SIGSTOP)

    async def story() -> None:
        await asyncio.sleep(0.1)
        old.kill()
        confirmed.extend(line.strip() for line in old.stdout.read().splitlines())  # type: ignore[union-attr]
        old.wait()
        store = await open_store(path, writer="process")
        engine = Engine(store, RandomIdentities(), SystemClock())
        ids: set[MessageId] = set()
        for number in range(60):
            if number == 20:
                os.kill(writer, signal.SIGCONT)
            try:
                (answer,) = await engine.put("shop", "jobs", [NewMessage(b"new %d" % number)])
            except Unavailable:
                # It was stopped in the midst of a transaction, and holds the file's lock until it goes on.
                assert number < 20
                os.kill(writer, signal.SIGCONT)
                ids.add(MessageId(-1, number))
                continue
            assert isinstance(answer, MessageId), answer
            ids.add(answer)
            confirmed.append(f"new {number}")
        assert len(ids) == 60
        received = [body.decode() for body in await drain(engine)]
        assert len(received) == len(set(received))
        assert set(confirmed) <= set(received)
        assert len(received) <= len(confirmed) + 8
        await store.close()

    try:
        asyncio.run(asyncio.wait_for(story(), 60))
        for _ in range(100):
            try:
                os.kill(writer, 0)
            except ProcessLookupError:
                break
            asyncio.run(asyncio.sleep(0.05))
        else:
            pytest.fail("the old writer did not end with its server")
    finally:
        old.stdout.close()
        for pid in (writer, old.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
