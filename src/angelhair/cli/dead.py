"""`angelhair dead`: look at dead letters, and send them back."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, FAILED, Ended, code_of, complain, in_words
from angelhair.cli.get import add_count, add_fail_empty, found_any
from angelhair.cli.output import counted, print_json, print_result, progress
from angelhair.cli.parsers import add_command, add_group, add_queue, whole
from angelhair.cli.peek import DEFAULT_COUNT
from angelhair.cli.shown import message_json, print_peeked
from angelhair.errors import AngelhairError, QueueNotFound
from angelhair.model import TIMELINE

if TYPE_CHECKING:
    from angelhair.client import Client, PeekedMessage


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "dead", "look at dead letters and send them back",
        "Looks at messages that were delivered too often, and sends them back. QUEUE is the queue that they came from; "
        "with --direct it is the dead-letter queue itself.",
    )
    parser = add_command(
        verbs, "list", "look at dead letters without taking them",
        "Shows messages in the dead-letter queue of QUEUE, without taking them. Columns as with `peek`.",
        "angelhair dead list orders -n 20\nangelhair dead list orders-dead --direct", list_dead,
    )
    add_queue(parser)
    _add_direct(parser)
    add_count(parser, DEFAULT_COUNT)
    add_fail_empty(parser)
    add_server_flags(parser)

    parser = add_command(
        verbs, "redrive", "send dead letters back",
        "Moves what is in the dead-letter queue of QUEUE back to where each message came from, or to another queue. "
        "Several queues may share one dead-letter queue: all that it holds goes. What dies again meanwhile stays.",
        """
        angelhair dead redrive orders
        angelhair dead redrive orders --to orders-slow --count 100""",
        redrive,
    )
    add_queue(parser)
    _add_direct(parser)
    parser.add_argument("--to", metavar="QUEUE", help="move them there (default: each to where it came from)")
    parser.add_argument("--count", "-n", type=whole(1), metavar="N", help="at most so many (default: all)")
    add_server_flags(parser)


def _add_direct(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--direct", action="store_true", help="QUEUE is the dead-letter queue itself")


def _holder(client: Client, arguments: argparse.Namespace) -> str:
    """The queue that the dead letters are in."""
    name: str = arguments.queue
    if arguments.direct:
        return name
    dead_letters = client.queue(name).settings.get("dead_letter_queue")
    if dead_letters is None:
        raise Ended(FAILED, f"queue {name!r} has no dead-letter queue; if it is one itself, add --direct")
    return dead_letters


def list_dead(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        holder = _holder(client, arguments)
        messages = client.peek(holder, arguments.count)
    if arguments.json:
        print_json({"queue": holder, "messages": [message_json(message) for message in messages]})
    else:
        print_peeked(messages)
    return found_any(arguments, messages)


def redrive(arguments: argparse.Namespace) -> int:
    moved = 0
    strays: list[PeekedMessage] = []
    with connected(arguments) as client:
        holder = _holder(client, arguments)
        wanted = arguments.count if arguments.count is not None else _waiting(client, holder)
        try:
            with progress("redriving", wanted) as advance:
                while wanted is None or moved < wanted:
                    count = limits.BATCH_MESSAGES if wanted is None else min(limits.BATCH_MESSAGES, wanted - moved)
                    portion = client.redrive(holder, arguments.to, count=count)
                    if not portion:
                        strays = [] if arguments.to is not None else _strays(client, holder)
                        break
                    moved += portion
                    advance(portion)
        except AngelhairError as error:
            if not moved:
                raise
            complain(arguments.program, f"{counted(moved, 'message')} moved, then: {in_words(error)}")
            return code_of(error)
    if arguments.json:
        print_json({"queue": holder, "moved": moved})
    else:
        print_result(moved, f"{counted(moved, 'message')} moved from {holder}")
    if strays:
        complain(arguments.program, f"{holder} keeps messages that came from no queue, or from one that is gone, such "
                 f"as {strays[0].id}; --to names a queue for them")
    return DONE


def _strays(client: Client, holder: str) -> list[PeekedMessage]:
    """Some of those that cannot go back. One that is merely new, or was just taken, is none of them."""
    messages = client.peek(holder, DEFAULT_COUNT)
    there = {queue for queue in {each.origin.queue for each in messages if each.origin} if _exists(client, queue)}
    return [each for each in messages if each.origin is None or each.origin.queue not in there]


def _exists(client: Client, queue: str) -> bool:
    try:
        client.queue(queue)
    except QueueNotFound:
        return False
    return True


def _waiting(client: Client, holder: str) -> int | None:
    """How many there are to move: what goes back and dies again at once is not chased for ever. None: not known."""
    found = client.queue(holder)
    if found.kind == TIMELINE:
        # It moves no messages, and says so when it is asked; even while nothing in it is due.
        return None
    statistics = found.statistics
    return statistics.visible if statistics is not None and statistics.exact else None
