"""kill -9 under load, again and again: whatever was confirmed to anybody outside must be there afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from angelhair.stores.sqlite import open_store
from tests.unit.sqlite.workload import broken_promises, hammer

TASKS = 8
ENDLESS_STEPS = 10**9

ROUNDS_PER_FILE = 25
"""Then a new file is begun, so that checking a round does not grow with the rounds before it."""

LONGEST_LIFE_SECONDS = 0.08
"""Long enough for hundreds of commits and, with small checkpoints, many of those."""

EARLY_DEATHS = 0.15
"""The share of rounds whose process dies at some moment of its start: while it opens the file and recovers the log."""

START_SECONDS = 0.4

CHECKPOINT_PAGES = 50
"""Many checkpoints in a short life."""


@dataclass
class Killed:
    rounds: int = 0
    confirmed: int = 0
    killed_at_work: int = 0
    broken: list[str] = field(default_factory=list)


def kill_repeatedly(folder: Path, rounds: int, seed: int = 0) -> Killed:
    dice = random.Random(seed)
    result = Killed()
    for number in range(rounds):
        path = folder / f"killed-{number // ROUNDS_PER_FILE}.db"
        lines = _one_life(path, f"run{number}", dice)
        result.rounds += 1
        result.confirmed += len(lines)
        result.killed_at_work += bool(lines)
        if path.exists():
            result.broken += [f"round {number}: {complaint}" for complaint in asyncio.run(_check(path, lines))]
    return result


def _one_life(path: Path, run: str, dice: random.Random) -> list[str]:
    """Starts a process, kills it, and returns what it had said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.unit.sqlite.killing", str(path), run]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        said = b""
        if dice.random() < EARLY_DEATHS:
            time.sleep(dice.uniform(0, START_SECONDS))
        else:
            said = os.read(child.stdout.fileno(), 65536)
            said += _listen(child.stdout.fileno(), dice.uniform(0, LONGEST_LIFE_SECONDS))
        child.send_signal(signal.SIGKILL)
        said += child.stdout.read()
        child.wait()
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the process ended by itself with {child.returncode}")
    *whole, _cut_off = said.decode().split("\n")
    return whole


def _listen(pipe: int, seconds: float) -> bytes:
    """Reads on while the process works: a full pipe would stop it."""
    said = b""
    os.set_blocking(pipe, False)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            said += os.read(pipe, 65536)
        time.sleep(0.001)
    os.set_blocking(pipe, True)
    return said


async def _check(path: Path, lines: list[str]) -> list[str]:
    store = await open_store(path)
    broken = await broken_promises(store, lines)
    await store.close()
    return broken + integrity_complaints(path)


def integrity_complaints(path: Path, vfs: str | None = None) -> list[str]:
    connection = apsw.Connection(str(path), vfs=vfs)
    try:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    finally:
        connection.close()
    return [] if found == ["ok"] else [f"integrity: {complaint}" for complaint in found]


async def _live(path: str, run: str) -> None:
    store = await open_store(path, checkpoint_pages=CHECKPOINT_PAGES)
    await hammer(store, _tell, run, TASKS, ENDLESS_STEPS)


def _tell(line: str) -> None:
    """Without a buffer: a line in the pipe outlives this process."""
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    asyncio.run(_live(sys.argv[1], sys.argv[2]))
