"""`angelhair get`: receive messages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, NOTHING_THERE, WrongUsage, code_of_all, complain, in_words
from angelhair.cli.output import counted, note, on_terminal, print_json, readable
from angelhair.cli.parsers import add_command, add_queue, duration, whole
from angelhair.cli.shown import delivery_json, print_deliveries
from angelhair.clock import SystemClock

if TYPE_CHECKING:
    from angelhair.client import Client, Message


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "get", "receive messages from a queue",
        "Receives messages. Each is hidden from others until its visibility time-out ends; what is not acked by its "
        "receipt comes again after that. A databag hides the partitions that they come from, with all that is left "
        "in those, and their ids are their receipts. Elsewhere than on a terminal: id, receipt, deliveries, time of "
        "the put, content type and body, tab-separated.",
        """
        angelhair get orders -n 10 --wait 20
        angelhair get orders --ack --body-only
        angelhair get orders -n 100 --json | jq -r '.messages[].receipt' | angelhair ack orders -
        while body=$(angelhair get orders --wait 60 --ack --body-only --fail-empty); do echo "$body"; done""",
        run,
    )
    add_queue(parser)
    add_count(parser, 1)
    parser.add_argument("--wait", type=duration, metavar="TIME", default=0.0,
                        help="wait for a message for as long as this (default: do not)")
    parser.add_argument("--visibility", type=duration, metavar="TIME",
                        help="for how long others do not see them (default: the queue's visibility_timeout)")
    parser.add_argument("--ack", action="store_true",
                        help="ack them once they are printed: they do not come again")
    parser.add_argument("--body-only", action="store_true",
                        help="print the bodies as they are, with a newline after each")
    parser.add_argument("--no-newline", action="store_true", help="with --body-only: nothing but the bodies' bytes")
    add_fail_empty(parser)
    add_server_flags(parser)


def add_count(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument("--count", "-n", type=whole(1, limits.BATCH_MESSAGES), metavar="N", default=default,
                        help=f"at most so many messages (default: {default})")


def add_fail_empty(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fail-empty", action="store_true", help=f"exit with {NOTHING_THERE} when there are none")


def run(arguments: argparse.Namespace) -> int:
    if arguments.body_only and arguments.json:
        raise WrongUsage("--body-only and --json cannot both be given")
    if arguments.no_newline and not arguments.body_only:
        raise WrongUsage("--no-newline goes with --body-only only")
    with connected(arguments) as client:
        messages = _receive(client, arguments)
        if arguments.json:
            print_json({"messages": [delivery_json(message) for message in messages]})
        elif arguments.body_only:
            _print_bodies(messages, b"" if arguments.no_newline else b"\n")
        else:
            print_deliveries(messages)
        # Now, so that nothing is acked that nobody could read: a closed pipe shows here.
        sys.stdout.flush()
        if messages and arguments.ack:
            return _ack(client, arguments, messages)
    return found_any(arguments, messages)


def _receive(client: Client, arguments: argparse.Namespace) -> list[Message]:
    clock = SystemClock()
    end_ms = clock.now().monotonic_ms + round(arguments.wait * 1000)
    while True:
        left_seconds = max(0.0, (end_ms - clock.now().monotonic_ms) / 1000)
        # One request may wait for a minute; who wants to wait longer asks again.
        wait_seconds = min(left_seconds, limits.WAIT_MAXIMUM_SECONDS)
        found = client.receive(
            arguments.queue, arguments.count, wait=wait_seconds, visibility=arguments.visibility
        )
        if found or wait_seconds == left_seconds:
            return found


def _print_bodies(messages: Sequence[Message], end: bytes) -> None:
    if on_terminal(sys.stdout):
        for message in messages:
            print(readable(message.body), end=end.decode())
        return
    sys.stdout.flush()
    for message in messages:
        sys.stdout.buffer.write(message.body + end)


def _ack(client: Client, arguments: argparse.Namespace, messages: Sequence[Message]) -> int:
    failures = client.ack_many(messages)
    if failures:
        complain(
            arguments.program,
            f"{counted(len(failures), 'message')} of {len(messages)} not acked: {in_words(failures[0].error)}",
        )
    return code_of_all(failure.error for failure in failures)


def found_any(arguments: argparse.Namespace, messages: Sequence[object]) -> int:
    if messages:
        return DONE
    note("no messages")
    return NOTHING_THERE if arguments.fail_empty else DONE
