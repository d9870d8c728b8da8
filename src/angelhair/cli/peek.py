"""`angelhair peek`: look at messages without taking them."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.get import add_count, add_fail_empty, found_any
from angelhair.cli.output import print_json
from angelhair.cli.parsers import add_command, add_queue
from angelhair.cli.shown import message_json, print_peeked

DEFAULT_COUNT = 10


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "peek", "look at messages without taking them",
        "Shows messages that could be received now, without taking them or counting as a delivery; of a timeline all "
        "that are not processed, due or not, those first that are due first; of a databag some of all that are there, "
        "served or not. Elsewhere than on a terminal: id, deliveries, time of the put, of a timeline when it is due, "
        "content type and body, tab-separated.",
        "angelhair peek orders -n 3\nangelhair peek orders --json | jq -r '.messages[].body'", run,
    )
    add_queue(parser)
    add_count(parser, DEFAULT_COUNT)
    add_fail_empty(parser)
    add_server_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        messages = client.peek(arguments.queue, arguments.count)
    if arguments.json:
        print_json({"messages": [message_json(message) for message in messages]})
    else:
        print_peeked(messages)
    return found_any(arguments, messages)
