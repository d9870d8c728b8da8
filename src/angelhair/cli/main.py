"""The command `angelhair`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from angelhair.cli import simulate, tour


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="angelhair",
        description="A message queue that keeps its messages in Apache Cassandra or in one SQLite file.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tour.add_to(commands)
    simulate.add_to(commands)
    chosen = parser.parse_args(arguments)
    result: int = chosen.run(chosen)
    return result
