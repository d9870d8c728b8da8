"""A whole server killed -9 under load on a SQLite file, again and again, each life going on where the last one ended.

The process that dies runs everything: engine, batching, background work, four producers and four consumers. What its
clients were told went into a pipe before; the book is kept by the one who kills.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from angelhair.model import QueueSettings
from angelhair.stores.sqlite import open_store
from tests.killed.draining import drain
from tests.killed.ledger import Account, Ledger
from tests.killed.load import Load, Server

PRODUCERS = CONSUMERS = 4

VISIBILITY_MS = 300
"""Shorter than a life and a start: what one life held is delivered again in the next."""

SETTINGS = QueueSettings(
    bucket_size=50, visibility_timeout_ms=VISIBILITY_MS, repair_timeout_ms=200, history_ms=500, retention_ms=None
)
"""Small buckets and short times: in one short life buckets are closed, repaired, finished and dropped."""

LEASE_MS = 100
"""A life is too short for the usual ten seconds: no background work would ever be killed."""

LONGEST_LIFE_ENTRIES = 500
"""Lines that a process says before it is killed, at most: a slow machine takes longer and proves as much."""

LAST_MOMENT_SECONDS = 0.02
"""At most so much later comes the kill: between any two lines."""

EARLY_DEATHS = 0.1
"""The share of lives that end at some moment of their start."""

START_SECONDS = 0.5

CHECKPOINT_PAGES = 100
"""Many checkpoints in a short life."""

QUIET_SECONDS = 2.0
"""Nothing may come for so long before the queue counts as drained: several of the time-outs above."""

READ_BYTES = 1 << 16

CHECK_SECONDS = 0.1
"""How soon a mistake in the clients ends the process."""


@dataclass
class Killed:
    lives: int
    killed_at_work: int
    account: Account


def live_and_die(path: Path, lives: int, seed: int = 0) -> Killed:
    """Kills as often as told, drains what is left, and gives the account of every message."""
    dice = random.Random(seed)
    ledger = Ledger(VISIBILITY_MS / 1000)
    killed_at_work = 0
    for number in range(lives):
        entries = _one_life(path, f"life{number}", dice)
        ledger.enter(entries)
        killed_at_work += any(" put " in entry for entry in entries)
    complaints = asyncio.run(_drain(path, ledger))
    account = ledger.account()
    account.complaints += complaints
    return Killed(lives, killed_at_work, account)


def _one_life(path: Path, run_name: str, dice: random.Random) -> list[str]:
    """Starts a process, kills it, and returns what it had said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.killed.lives", str(path), run_name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        pipe = child.stdout.fileno()
        said = b""
        if dice.random() < EARLY_DEATHS:
            said += _listen(pipe, dice.uniform(0, START_SECONDS))
        else:
            wanted = dice.randint(1, LONGEST_LIFE_ENTRIES)
            while said.count(b"\n") < wanted and (more := os.read(pipe, READ_BYTES)):
                said += more
            said += _listen(pipe, dice.uniform(0, LAST_MOMENT_SECONDS))
        child.send_signal(signal.SIGKILL)
        said += child.stdout.read()
        child.wait()
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the process ended by itself with {child.returncode}")
    # A line that the kill cut off was never said.
    *whole, _cut_off = said.decode().split("\n")
    return whole


def _listen(pipe: int, seconds: float) -> bytes:
    """Reads on while the process works: a full pipe would stop it."""
    said = b""
    os.set_blocking(pipe, False)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            said += os.read(pipe, READ_BYTES)
        time.sleep(0.001)
    os.set_blocking(pipe, True)
    return said


async def _drain(path: Path, ledger: Ledger) -> list[str]:
    server = Server(await open_store(path))
    await server.start(SETTINGS, LEASE_MS)
    complaints = await drain([server], ledger, QUIET_SECONDS, "drain")
    await server.stop()
    return complaints


async def _live(path: str, run_name: str) -> None:
    server = Server(await open_store(path, checkpoint_pages=CHECKPOINT_PAGES))
    await server.start(SETTINGS, LEASE_MS)
    load = Load([server], _tell, run_name)
    load.start(PRODUCERS, CONSUMERS)
    while True:
        load.check()
        await asyncio.sleep(CHECK_SECONDS)


def _tell(entry: str) -> None:
    """Without a buffer: a line in the pipe outlives this process."""
    os.write(1, entry.encode() + b"\n")


if __name__ == "__main__":
    asyncio.run(_live(sys.argv[1], sys.argv[2]))
