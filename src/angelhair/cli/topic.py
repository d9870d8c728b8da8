"""`angelhair topic`: make, list, show and delete topics, subscribe queues, publish."""

from __future__ import annotations

import argparse
from typing import Any

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected, server_url
from angelhair.cli.exits import DONE, FAILED, WrongUsage, complain
from angelhair.cli.output import Cell, Column, Room, confirmed, counted, note, print_json, print_table, say
from angelhair.cli.parsers import add_command, add_group, add_queue
from angelhair.cli.put import body_of
from angelhair.cli.shown import topic_json


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "topic", "make, list, show and delete topics, subscribe queues, publish",
        "Makes, lists, shows and deletes topics; subscribes queues to them; publishes.",
    )
    parser = add_command(
        verbs, "create", "make a topic",
        "Makes a topic. What is published to it reaches every queue that is subscribed then. One that exists with the "
        "same settings is as good as a new one. By one whose name ends with .fifo each queue gets the messages of a "
        "group in their order.",
        "angelhair topic create news\nangelhair topic create prices.fifo --content-dedup", create,
    )
    _add_topic(parser)
    parser.add_argument("--content-dedup", action="store_true", help="of a fifo topic: equal bodies are one message")
    add_server_flags(parser)

    parser = add_command(verbs, "list", "list topics", "Lists the names of the topics, in order.",
                         "angelhair topic list", list_topics)
    parser.add_argument("prefix", metavar="PREFIX", nargs="?", default="", help="only names that begin like this")
    add_server_flags(parser)

    parser = add_command(
        verbs, "show", "show a topic and who is subscribed", "Shows a topic and the queues that are subscribed to it.",
        "angelhair topic show news", show,
    )
    _add_topic(parser)
    add_server_flags(parser)

    parser = add_command(
        verbs, "delete", "delete topics",
        "Deletes topics. What was published before still reaches those who were subscribed. Asks first, on a terminal.",
        "angelhair topic delete news --yes", delete,
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="the topics' names")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    add_server_flags(parser)

    for name, summary, words, run in (
        ("subscribe", "subscribe a queue to a topic", "From now on the queue gets what is published.", subscribe),
        ("unsubscribe", "end a queue's subscription", "What was published before still reaches the queue.",
         unsubscribe),
    ):
        parser = add_command(verbs, name, summary, words, f"angelhair topic {name} news orders", run)
        _add_topic(parser)
        add_queue(parser)
        add_server_flags(parser)

    parser = add_command(
        verbs, "publish", "publish a message",
        "Publishes one message and prints its id. The body is BODY, or what is in a file, or comes from standard "
        "input, byte for byte.",
        "angelhair topic publish news 'hello'\nangelhair topic publish prices.fifo --group eur --file prices.json",
        publish,
    )
    _add_topic(parser)
    parser.add_argument("body", metavar="BODY", nargs="?", help="the body; - or nothing reads standard input")
    parser.add_argument("--file", "-f", metavar="FILE", help="take the body from this file")
    parser.add_argument("--content-type", metavar="TYPE", help="what the body is, as in application/json")
    parser.add_argument("--group", metavar="GROUP", help="of a fifo topic, which needs one")
    parser.add_argument("--key", metavar="KEY", help="within five minutes, messages with one key are one")
    parser.add_argument("--quiet", "-q", action="store_true", help="print no id")
    add_server_flags(parser)


def _add_topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the topic's name")


def create(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        made = client.create_topic(arguments.topic, content_dedup=arguments.content_dedup)
    if arguments.json:
        print_json(topic_json(made))
    else:
        say(f"topic {made.name} is there")
    return DONE


def list_topics(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        names = list(client.topics(arguments.prefix))
    if arguments.json:
        print_json({"topics": names})
    else:
        print_table([Column("TOPIC")], [[name] for name in names])
    if not names:
        note("there are no topics" + (f" that begin with {arguments.prefix}" if arguments.prefix else ""))
    return DONE


def show(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        found = client.topic(arguments.topic)
    if arguments.json:
        print_json(topic_json(found))
        return DONE
    rows: list[list[Cell]] = [
        ["name", found.name], ["kind", found.kind], ["content_dedup", found.content_dedup],
        ["dedup_scope", found.dedup_scope], ["created_at", found.created_at], ["changed_at", found.changed_at],
    ]
    rows += [["queue", queue] for queue in found.queues or ()]
    rows.append(["other subscriptions", found.others])
    print_table([Column("WHAT"), Column("VALUE", room=Room.WRAPPED)], rows)
    return DONE


def delete(arguments: argparse.Namespace) -> int:
    names: list[str] = arguments.topics
    with connected(arguments) as client:
        what = f"topic {names[0]}" if len(names) == 1 else counted(len(names), "topic")
        if not confirmed(f"delete {what} on {server_url(arguments)}?", arguments.yes):
            complain(arguments.program, "nothing was deleted")
            return FAILED
        for name in names:
            client.delete_topic(name)
            if not arguments.json:
                say(f"topic {name} is deleted")
    if arguments.json:
        print_json({"deleted": names})
    return DONE


def subscribe(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        client.subscribe(arguments.topic, arguments.queue)
    return _said(arguments, "subscribed to")


def unsubscribe(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        client.unsubscribe(arguments.topic, arguments.queue)
    return _said(arguments, "no longer subscribed to")


def _said(arguments: argparse.Namespace, what: str) -> int:
    if arguments.json:
        print_json({"topic": arguments.topic, "queue": arguments.queue})
    else:
        say(f"queue {arguments.queue} is {what} topic {arguments.topic}")
    return DONE


def publish(arguments: argparse.Namespace) -> int:
    if arguments.body is not None and arguments.file is not None:
        raise WrongUsage("BODY and --file cannot both be given")
    body = body_of(arguments, limits.PUBLICATION_BYTES)
    with connected(arguments) as client:
        id_ = client.publish(
            arguments.topic, body, content_type=arguments.content_type, key=arguments.key, group=arguments.group
        )
    if arguments.json:
        print_json({"id": id_, "topic": arguments.topic})
    elif not arguments.quiet:
        print(id_)
    return DONE
