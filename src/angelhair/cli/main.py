"""The command `angelhair`."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from angelhair.cli.exits import FAILED, INTERRUPTED, NOBODY_READS, Known, complain, finish
from angelhair.cli.parsers import Help, Parser


class Command(NamedTuple):
    name: str
    summary: str
    """As its own help has it, so that the list of all commands is printed without importing any."""

    @property
    def module(self) -> str:
        return f"angelhair.cli.{self.name}"


COMMANDS = (
    Command("serve", "serve queues over HTTP"),
    Command("bootstrap", "create Angelhair's tables in a Cassandra keyspace"),
    Command("account", "make, list and delete accounts"),
    Command("key", "make, list, disable, enable and delete access keys"),
    Command("config", "show the settings in force and where they come from"),
    Command("doctor", "check a server and its store"),
    Command("cluster", "show which servers there are"),
    Command("queue", "make, list, show, change, delete and purge queues"),
    Command("topic", "make, list, show and delete topics, subscribe queues, publish"),
    Command("timeline", "make timelines, put what is due at a time, and work on what is"),
    Command("put", "put messages into a queue"),
    Command("get", "receive messages from a queue"),
    Command("ack", "settle messages by their receipts"),
    Command("peek", "look at messages without taking them"),
    Command("dead", "look at dead letters and send them back"),
    Command("repair", "see where repair stands, and have it look again"),
    Command("load", "produce and consume at a rate, and account for every message"),
    Command("pipeline", "work on a queue's history, on Spark"),
    Command("tour", "see what a queue does, step by step, on the embedded store"),
    Command("simulate", "run the engine in a seeded, hostile world"),
    Command("completion", "print a script that completes this command in a shell"),
)

SERVER_FLAGS = ("--server", "--ca")
"""With a value each."""

EVERY_NAME = frozenset(command.name for command in COMMANDS)


def build_parser(wanted: Collection[str] = EVERY_NAME) -> Parser:
    """The whole command; of the commands that are not wanted only the names, whose modules are not imported."""
    parser = Parser(
        prog="angelhair",
        formatter_class=Help,
        description="A message queue that keeps its messages in Apache Cassandra or in one SQLite file.",
        epilog="`angelhair COMMAND --help` says more, with examples; --server and --ca may also stand before the "
        "command. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing there, 69 unavailable, 75 outcome unknown.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and end")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        if command.name in wanted:
            importlib.import_module(command.module).add_to(commands)
        else:
            commands.add_parser(command.name, help=command.summary)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    server, given = _split_server(sys.argv[1:] if arguments is None else arguments)
    # No other option before the command takes a value, so the first word is the command.
    first = next((word for word in given if not word.startswith("-")), "")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character shows its number; that is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    program = f"angelhair {first}"
    try:
        parser = build_parser({first})
        chosen = parser.parse_args(_joined(parser, server, given))
        program = getattr(chosen, "program", program)
        result: int = chosen.run(chosen)
        # What is still in the buffer meets a closed pipe here and not while the interpreter shuts down.
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes once more at the end; what nobody reads goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except Known as error:
        return finish(program, error)
    except OSError as error:
        complain(program, str(error))
        return FAILED
    return result


def _split_server(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Where the server is may be said before the command, too. That; and the rest."""
    count = 0
    while count < len(given) and given[count].partition("=")[0] in SERVER_FLAGS:
        count += 1 if "=" in given[count] else 2
    return list(given[:count]), list(given[count:])


def _joined(parser: Parser, server: list[str], given: list[str]) -> list[str]:
    """The server's flags stand where the command looks for them: directly behind its name."""
    name = 2 if given and parser.has_commands(given[0]) else 1
    return [*given[:name], *server, *given[name:]]


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from angelhair.server.release import version

        print(f"angelhair {version()}")
        parser.exit()
