"""The command `angelhair`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from angelhair.cli import simulate, tour

INTERRUPTED = 130
"""What a shell reports for a command that Ctrl-C ended."""

NOBODY_READS = 141
"""What a shell reports for a command whose reader went away, as in `angelhair simulate --replay 7 | head`."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="angelhair",
        description="A message queue that keeps its messages in Apache Cassandra or in one SQLite file.",
    )
    parser.add_argument("--version", action="version", version=f"angelhair {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tour.add_to(commands)
    simulate.add_to(commands)
    chosen = parser.parse_args(arguments)
    try:
        result: int = chosen.run(chosen)
        # What is still in the buffer meets a closed pipe here and not while the interpreter shuts down.
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes once more at the end; what nobody reads goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    return result


def _version() -> str:
    try:
        return metadata.version("angelhair")
    except metadata.PackageNotFoundError:
        return "(a checkout that is not installed)"
