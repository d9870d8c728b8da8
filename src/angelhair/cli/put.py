"""`angelhair put`: one message, or a message for each line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, FAILED, Ended, WrongUsage, code_of_all, complain, in_words, word_of
from angelhair.cli.output import counted, note, on_terminal, print_json, progress, say
from angelhair.cli.parsers import add_command, add_queue, due, duration, whole
from angelhair.errors import AngelhairError

if TYPE_CHECKING:
    from angelhair.client import Client, PutOutcome


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "put", "put messages into a queue",
        "Puts one message and prints its id. The body is BODY, or what is in a file, or comes from standard input, "
        "byte for byte. With --lines every line is a message of its own, put as it comes; the ids are printed in the "
        "order of the lines (- for a line that was not put), and with --json one object a line.",
        """
        angelhair put orders '{"order": 4711}' --content-type application/json
        angelhair put reminders 'call back' --due '2026-12-24 18:00'
        angelhair put images --file cat.png --content-type image/png
        tail -f access.log | angelhair put log --lines --quiet""",
        run,
    )
    add_queue(parser)
    parser.add_argument("body", metavar="BODY", nargs="?", help="the body; - or nothing reads standard input")
    parser.add_argument("--file", "-f", metavar="FILE", help="take the body, or the lines, from this file")
    parser.add_argument("--lines", action="store_true", help="a message for each line, without its end")
    parser.add_argument("--content-type", metavar="TYPE", help="what the body is, as in application/json")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--delay", type=duration, metavar="TIME",
                      help="not to be received before this has passed: 30s, 5m")
    when.add_argument("--due", type=due, metavar="TIME",
                      help="not to be received before: 2026-11-15T13:00:00Z, or '2026-11-15 13:00' in local time")
    parser.add_argument("--key", metavar="KEY", help="an idempotency key: within the queue's dedup_window, puts with "
                        "one key are one message")
    parser.add_argument("--group", metavar="NAME", help="whose messages they are: who floods a fair queue is served "
                        "after the others")
    parser.add_argument("--priority", type=whole(0, limits.PRIORITIES_MAXIMUM - 1), metavar="N",
                        help="0 to 9, a higher one is served first; one above what the queue's priorities allow counts "
                        "as its highest, so it does nothing in a queue that has only one (default: 0)")
    parser.add_argument("--quiet", "-q", action="store_true", help="print no ids")
    add_server_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.body is not None and arguments.file is not None:
        raise WrongUsage("BODY and --file cannot both be given")
    if arguments.lines and arguments.key is not None:
        raise WrongUsage("with --key all lines would be one message")
    if arguments.lines and arguments.body not in (None, "-"):
        raise WrongUsage("--lines reads a file or standard input, not BODY")
    with connected(arguments) as client:
        return _put_lines(client, arguments) if arguments.lines else _put_one(client, arguments)


def body_of(arguments: argparse.Namespace, most: int = limits.BODY_BYTES) -> bytes:
    """What was given as BODY, or is in the file, or comes from standard input."""
    if arguments.body not in (None, "-"):
        # The very bytes of the command line, whatever its encoding.
        body = os.fsencode(arguments.body)
    else:
        with _source(arguments) as source:
            # One byte more than is allowed is enough to know; the rest may be without end.
            body = source.read(most + 1)
    if len(body) > most:
        raise Ended(FAILED, f"the body has more than {most:,} bytes, which is the limit")
    return body


def _put_one(client: Client, arguments: argparse.Namespace) -> int:
    body = body_of(arguments)
    id_ = client.put(
        arguments.queue, body, content_type=arguments.content_type, delay=arguments.delay, due=arguments.due,
        key=arguments.key, group=arguments.group, priority=arguments.priority,
    )
    if arguments.json:
        print_json({"id": id_, "queue": arguments.queue})
    elif not arguments.quiet:
        print(id_)
    return DONE


@contextmanager
def _source(arguments: argparse.Namespace) -> Iterator[BinaryIO]:
    if arguments.file is None or arguments.file == "-":
        if on_terminal(sys.stdin):
            note("reading from the terminal; end with Ctrl-D")
        yield sys.stdin.buffer
        return
    with _opened(arguments.file) as source:
        yield source


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise WrongUsage(f"--file: {path} cannot be read: {error.strerror}") from error


# --- lines ------------------------------------------------------------------------------------------------------------


def portions(descriptor: int) -> Iterator[list[bytes]]:
    """The lines that are there, whenever some are: who writes slowly need not fill a batch first."""
    rest = b""
    while found := os.read(descriptor, limits.COMMAND_READ_BYTES):
        lines = (rest + found).split(b"\n") if b"\n" in found else [rest + found]
        rest = lines.pop()
        if len(rest) > limits.BODY_BYTES:
            # Given on as it is: it is refused where lines are counted.
            yield [*lines, rest]
            return
        if lines:
            yield lines
    if rest:
        yield [rest]


def _put_lines(client: Client, arguments: argparse.Namespace) -> int:
    put = 0
    with _source(arguments) as source, progress("putting", None) as advance:
        before = 0
        for lines in portions(source.fileno()):
            for first in range(0, len(lines), limits.BATCH_MESSAGES):
                portion = lines[first : first + limits.BATCH_MESSAGES]
                outcomes = _put_portion(client, arguments, portion, before)
                _print(outcomes, before, arguments)
                failed = [
                    (number, outcome.error)
                    for number, outcome in enumerate(outcomes, before + 1) if outcome.error is not None
                ]
                before += len(portion)
                put += len(portion) - len(failed)
                advance(len(portion))
                if failed:
                    return _stopped(arguments, put, before, failed)
    if not arguments.json and not arguments.quiet:
        say(f"{counted(put, 'message')} put")
    return DONE


def _put_portion(
    client: Client, arguments: argparse.Namespace, lines: list[bytes], before: int
) -> list[PutOutcome]:
    from angelhair.client import Draft, PutOutcome

    for index, line in enumerate(lines):
        if len(line) > limits.BODY_BYTES:
            raise Ended(
                FAILED, f"line {before + index + 1} has more than {limits.BODY_BYTES:,} bytes, which is the limit; "
                f"{counted(before, 'line')} before it were put",
            )
    drafts = [
        Draft(line, arguments.content_type, arguments.delay, arguments.due, None, arguments.group, arguments.priority)
        for line in lines
    ]
    try:
        return client.put_many(arguments.queue, drafts)
    except AngelhairError as error:
        return [PutOutcome(None, error)] * len(lines)


def _print(outcomes: list[PutOutcome], before: int, arguments: argparse.Namespace) -> None:
    if arguments.quiet:
        return
    for number, outcome in enumerate(outcomes, before + 1):
        if arguments.json:
            said: dict[str, Any] = {"line": number}
            if outcome.error is None:
                said["id"] = outcome.id
            else:
                said["error"] = {"code": word_of(outcome.error), "message": str(outcome.error)}
            print_json(said, one_line=True)
        elif not on_terminal(sys.stdout):
            print(outcome.id or "-")
    sys.stdout.flush()


def _stopped(
    arguments: argparse.Namespace, put: int, read: int, failed: list[tuple[int, AngelhairError]]
) -> int:
    number, error = failed[0]
    complain(
        arguments.program,
        f"stopped after line {read}: {counted(put, 'message')} put, {counted(len(failed), 'line')} not, the first of "
        f"them line {number}: {in_words(error)}",
    )
    return code_of_all(error for _, error in failed)
