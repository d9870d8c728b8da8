"""`angelhair queue`: make, list, show, change, delete and purge queues."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from angelhair.cli.asking import add_server_flags, connected, server_url
from angelhair.cli.exits import DONE, FAILED, WrongUsage, complain
from angelhair.cli.output import (
    Cell,
    Column,
    Room,
    confirmed,
    counted,
    escaped,
    note,
    on_terminal,
    print_json,
    print_table,
    progress,
    say,
)
from angelhair.cli.parsers import add_command, add_group, add_queue
from angelhair.cli.queue_settings import add_settings, read_settings
from angelhair.cli.shown import partition_rows, queue_json
from angelhair.model import DATABAG

if TYPE_CHECKING:
    from angelhair.client import Queue

STATISTICS = ("visible", "in_flight", "delayed", "dead", "oldest_age", "exact")


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "queue", "make, list, show, change, delete and purge queues",
        "Makes, lists, shows, changes, deletes and purges queues.",
    )
    parser = add_command(
        verbs, "create", "make a queue",
        "Makes a queue; settings that are not given have their defaults. One whose name ends with .fifo keeps the "
        "order of each group of messages; kind=databag makes one for the highest rates, without any order "
        "(docs/databags.md). One that exists with the same settings is as good as a new one; one with other settings "
        "is an error that names them.",
        """
        angelhair queue create orders
        angelhair queue create orders visibility_timeout=2m max_deliveries=5 dead_letter_queue=orders-dead
        angelhair queue create events retention=none bucket_size=5000
        angelhair queue create prices.fifo dedup_scope=group
        angelhair queue create clicks --kind databag --min-partitions 2000""",
        create,
    )
    add_queue(parser)
    add_settings(parser)
    add_server_flags(parser)

    parser = add_command(
        verbs, "list", "list queues",
        "Lists the names of the queues, in order. Elsewhere than on a terminal: one name a line; with --long name, "
        "visible, in flight, delayed, dead, age of the oldest in seconds, and whether the counts are exact.",
        """
        angelhair queue list
        angelhair queue list ord --long""",
        list_queues,
    )
    parser.add_argument("prefix", metavar="PREFIX", nargs="?", default="", help="only names that begin like this")
    parser.add_argument("--long", "-l", action="store_true", help="also what they hold: one more request for each")
    add_server_flags(parser)

    parser = add_command(
        verbs, "show", "show a queue's settings and what it holds",
        "Shows a queue's settings, which of them can change, and what it holds; of a databag also how it is cut into "
        "partitions, how many of them are locked, and how many messages were served twice. Elsewhere than on a "
        "terminal: name, value, and for settings whether they can change.",
        "angelhair queue show orders\nangelhair queue show orders --json", show,
    )
    add_queue(parser)
    add_server_flags(parser)

    parser = add_command(
        verbs, "set", "change a queue's settings",
        "Changes these settings and leaves the others. They are in force at once on the server that is asked, and "
        "within seconds on others; those of a databag on each server at its next sync, after half a minute at most "
        "unless it was told otherwise: `queue show` has what is in force.",
        "angelhair queue set orders visibility_timeout=30 retention=none\n"
        "angelhair queue set clicks --min-partitions 128 --visibility-timeout 5s", change,
    )
    add_queue(parser)
    add_settings(parser)
    add_server_flags(parser)

    parser = add_command(
        verbs, "delete", "delete queues with all that is in them",
        "Deletes queues with all that is in them. Asks first, on a terminal.",
        "angelhair queue delete orders orders-dead --yes", delete,
    )
    _add_many(parser)
    parser = add_command(
        verbs, "purge", "remove all messages of queues",
        "Removes all messages that were put before, those in flight too; the queue stays. Asks first, on a terminal.",
        "angelhair queue purge orders", purge,
    )
    _add_many(parser)


def _add_many(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("queues", metavar="QUEUE", nargs="+", help="the queues' names")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    add_server_flags(parser)


def create(arguments: argparse.Namespace) -> int:
    settings = read_settings(arguments)
    with connected(arguments) as client:
        made = client.create_queue(arguments.queue, **settings)
    if arguments.json:
        print_json(queue_json(made))
    else:
        say(f"queue {made.name} is there")
    for warning in made.warnings:
        # Also where nothing is printed: who makes queues by a script is to see it.
        complain(arguments.program, f"warning: {warning}")
    return DONE


def list_queues(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        names = list(client.queues(arguments.prefix))
        if not arguments.long:
            if arguments.json:
                print_json({"queues": names})
            else:
                print_table([Column("QUEUE")], [[name] for name in names])
        else:
            with progress("looking", len(names), "queues") as advance:
                found = []
                for name in names:
                    found.append(client.queue(name))
                    advance(1)
            if arguments.json:
                print_json({"queues": [queue_json(queue) for queue in found]})
            else:
                titles = ("QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED", "DEAD", "OLDEST (S)", "EXACT")
                columns = [Column("QUEUE"), *(
                    Column(title, numeric=title != "EXACT", room=Room.LEFT_OUT) for title in titles[1:]
                )]
                print_table(columns, [[queue.name, *_statistics(queue)] for queue in found])
    if not names:
        note("there are no queues" + (f" that begin with {arguments.prefix}" if arguments.prefix else ""))
    return DONE


def show(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        found = client.queue(arguments.queue)
    if arguments.json:
        print_json(queue_json(found))
    else:
        _print(found)
    return DONE


def change(arguments: argparse.Namespace) -> int:
    settings = read_settings(arguments)
    if not settings:
        raise WrongUsage("nothing to change: name a setting, as in visibility_timeout=30s")
    with connected(arguments) as client:
        changed = client.change_queue(arguments.queue, **settings)
    if arguments.json:
        print_json(queue_json(changed))
    else:
        _print(changed)
        if changed.kind == DATABAG:
            say("it is stored; each server goes by it from its next sync on")
    return DONE


def delete(arguments: argparse.Namespace) -> int:
    return _each(arguments, "delete", "deleted")


def purge(arguments: argparse.Namespace) -> int:
    return _each(arguments, "purge", "purged")


def _each(arguments: argparse.Namespace, verb: str, done: str) -> int:
    names: list[str] = arguments.queues
    with connected(arguments) as client:
        what = f"queue {names[0]}" if len(names) == 1 else counted(len(names), "queue")
        if not confirmed(f"{verb} {what} on {server_url(arguments)}?", arguments.yes):
            complain(arguments.program, f"nothing was {done}")
            return FAILED
        for name in names:
            if verb == "delete":
                client.delete_queue(name)
            else:
                client.purge(name)
            if not arguments.json:
                say(f"queue {name} is {done}")
    if arguments.json:
        print_json({done: names})
    return DONE


def _print(queue: Queue) -> None:
    rows: list[list[Cell]] = [["name", queue.name, None]]
    for name, value in queue.settings.items():
        assert value is None or isinstance(value, str | int | float)
        rows.append([name, value, "fixed" if name in queue.fixed else "can change"])
    rows += [["created_at", queue.created_at, None], ["changed_at", queue.changed_at, None]]
    if queue.statistics is not None:
        rows += [[name, value, None] for name, value in zip(STATISTICS, _statistics(queue), strict=True)]
    rows += partition_rows(queue)
    if not on_terminal(sys.stdout):
        rows += [["warning", warning, None] for warning in queue.warnings]
    print_table([Column("WHAT"), Column("VALUE", room=Room.WRAPPED), Column("")], rows)
    for warning in queue.warnings:
        # Not in the table: it is a sentence, longer than all that is there.
        say(f"warning: {escaped(warning)}")


def _statistics(queue: Queue) -> list[Cell]:
    assert queue.statistics is not None
    return [getattr(queue.statistics, name) for name in STATISTICS]
