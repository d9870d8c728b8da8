"""`angelhair tour`: what a queue does, step by step, on the embedded store. Every sentence it tells is checked."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from angelhair.cli import tour_steps
from angelhair.cli.parsers import add_command
from angelhair.cli.tour_telling import Teller
from angelhair.cli.tour_world import NotAsTold, RealTime, SkippedTime, TourTime, TourWorld
from angelhair.engine.engine import Engine
from angelhair.errors import AngelhairError
from angelhair.identities import RandomIdentities
from angelhair.stores.sqlite import open_store

PAUSE_SECONDS = 1.5
"""Rest between two steps: long enough to read one, and nine of them stay under a quarter of a minute."""

FILE_NAME = "angelhair.db"


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "tour", "see what a queue does, step by step, on the embedded store",
        "Plays a queue's life on a SQLite file: put, receive, ack, a stale receipt, a time-out, a server killed with "
        "-9, a late write, a queue deleted and made again. Each step is checked; exits with 1 if one is not as told.",
        """
        angelhair tour
        angelhair tour --fast --data ./tour""",
        run,
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the file in DIR (default: a temporary one)")
    parser.add_argument(
        "--fast", action="store_true", help="no pauses, and where the tour would wait the engine's clock is put forward"
    )
    parser.add_argument("--plain", action="store_true", help="no colours (also when piped, or with NO_COLOR set)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.data is not None and arguments.data.exists() and not arguments.data.is_dir():
        print(f"angelhair tour: --data wants a directory, and {arguments.data} is a file", file=sys.stderr)
        return 2
    colours = sys.stdout.isatty() and not arguments.plain and not os.environ.get("NO_COLOR")
    teller = Teller(sys.stdout, colours)
    time = SkippedTime() if arguments.fast else RealTime(PAUSE_SECONDS)
    try:
        with _directory(arguments.data) as directory:
            asyncio.run(_play(directory / FILE_NAME, teller, time))
    except NotAsTold as error:
        teller.failed(f"Not as told: {error}")
        return 1
    except BrokenPipeError:
        raise
    except (AngelhairError, OSError) as error:
        teller.failed(f"The tour could not go on: {type(error).__name__}: {error}")
        return 1
    teller.say_what_next(arguments.data / FILE_NAME if arguments.data is not None else None)
    return 0


@contextlib.contextmanager
def _directory(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        yield wanted
        return
    with tempfile.TemporaryDirectory(prefix="angelhair-tour-") as name:
        yield Path(name)


async def _play(path: Path, teller: Teller, time: TourTime) -> None:
    async with _opened(path, teller, time) as world:
        for index, step in enumerate(tour_steps.STEPS):
            if index:
                await time.pause()
            await step(world)


@contextlib.asynccontextmanager
async def _opened(path: Path, teller: Teller, time: TourTime) -> AsyncIterator[TourWorld]:
    store = await open_store(path, clock=time.clock)
    try:
        identities = RandomIdentities()
        # A name of its own, so that a second tour on the same file does not meet the first one's queues.
        account = f"tour-{identities.fresh()[8:16]}"
        engines = [Engine(store, RandomIdentities(), time.clock) for _ in range(2)]
        async with TourWorld(path, store, account, engines[0], engines[1], teller, time) as world:
            yield world
    finally:
        await store.close()
