"""`angelhair ack`: settle messages by their receipts."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, WrongUsage, code_of_all, complain, in_words, word_of
from angelhair.cli.output import counted, note, on_terminal, print_json, say
from angelhair.cli.parsers import add_command, add_queue


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "ack", "settle messages by their receipts",
        "Settles messages for good, by the receipts that `get` printed. Again is as good as once; a receipt whose "
        "message was delivered again since is stale, and settles nothing. Messages of a databag are settled by their "
        "ids, whoever has them. A bad receipt concerns nobody but itself.",
        """
        angelhair ack orders AVFvN0mX2mQAAAAAAAAAAAAAAAABq2mYt0c5hWzD9w4J
        angelhair get orders -n 100 | cut -f 2 | angelhair ack orders -
        angelhair ack clicks 0-7277817017162809860""",
        run,
    )
    add_queue(parser)
    parser.add_argument("receipts", metavar="RECEIPT", nargs="+", help="receipts; - reads them from standard input")
    add_server_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    from_input = arguments.receipts == ["-"]
    if from_input and on_terminal(sys.stdin):
        note("reading receipts from the terminal; end with Ctrl-D")
    given = sys.stdin.read().split() if from_input else arguments.receipts
    if "-" in given:
        raise WrongUsage("- reads all receipts from standard input, and stands alone")
    # One receipt twice is one message: it would only blur the count.
    receipts = list(dict.fromkeys(given))
    with connected(arguments) as client:
        from angelhair.client import Receipt

        failures = client.ack_many(Receipt(arguments.queue, receipt) for receipt in receipts)
    acked = len(receipts) - len(failures)
    if arguments.json:
        print_json({
            "acked": acked,
            "failed": [
                {"receipt": failure.receipt.receipt, "code": word_of(failure.error), "message": str(failure.error)}
                for failure in failures
            ],
        })
    elif not failures:
        say(f"{counted(acked, 'message')} acked")
    if not failures:
        return DONE
    if len(failures) == len(receipts) == 1:
        complain(arguments.program, in_words(failures[0].error))
    else:
        complain(
            arguments.program,
            f"{acked:,} acked, {len(failures):,} not; the first of them {failures[0].receipt.receipt}: "
            f"{in_words(failures[0].error)}",
        )
    return code_of_all(failure.error for failure in failures)
