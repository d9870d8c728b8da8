"""`angelhair timeline`: make timelines, put what is due at a time, and work on what is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, WrongUsage, complain
from angelhair.cli.output import Cell, Column, Room, print_json, print_table, rfc3339, say
from angelhair.cli.parsers import add_command, add_group, add_queue, due, duration, whole
from angelhair.cli.put import body_of
from angelhair.cli.queue_settings import NOTHING
from angelhair.cli.shown import queue_json
from angelhair.cli.timeline_kind import check_kind
from angelhair.cli.timeline_produce import add_produce
from angelhair.cli.timeline_work import add_work
from angelhair.errors import QueueExists
from angelhair.model import FIFO_ENDING, TIMELINE

if TYPE_CHECKING:
    from angelhair.client import Client, Shard

DEAD_ENDING = "-dead"
DEFAULT_DELIVERIES = 5


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "timeline", "make timelines, put what is due at a time, and work on what is",
        "Timelines are queues for work that is due at a time: reminders, retries, schedules. Producers say when; "
        "workers share the shards of the timeline and handle what is due. docs/timelines.md says more.",
    )
    _add_create(verbs)
    _add_put(verbs)
    add_produce(verbs)
    add_work(verbs)
    parser = add_command(
        verbs, "shards", "show the shards of a timeline and who works on them",
        "Shows each shard: who holds its lock, since when, when it was last touched, up to where all is processed, and "
        "for how long the oldest message that is due has waited (lag).",
        "angelhair timeline shards reminders\nangelhair timeline shards reminders --json", shards,
    )
    add_queue(parser)
    add_server_flags(parser)


def _add_create(verbs: Any) -> None:
    parser = add_command(
        verbs, "create", "make a timeline, with its shards and a queue for its dead letters",
        f"Makes a timeline. What was delivered too often goes to the queue QUEUE{DEAD_ENDING}, which is made too. One "
        "that exists with the same settings is as good as a new one.",
        """
        angelhair timeline create reminders
        angelhair timeline create expirations --shards 12 --granularity hour --expire-after 90d
        angelhair timeline create ticks --producer-delay 1s --lock 5s --dead-letter-queue none""",
        create,
    )
    add_queue(parser)
    parser.add_argument("--shards", type=whole(1, limits.SHARDS_MAXIMUM), metavar="N",
                        help=f"worked on by one worker each; as many workers can share them (default: {limits.SHARDS})")
    parser.add_argument("--granularity", choices=("minute", "hour", "day"), metavar="minute|hour|day",
                        help="how much time is stored together (default: minute)")
    parser.add_argument("--producer-delay", type=duration, metavar="TIME",
                        help="what is put is delivered so much later at least (default: 60s)")
    parser.add_argument("--expire-after", type=_duration_or_none, metavar="TIME",
                        help="how long after its time a message is kept; none: until all before it is done "
                        "(default: 30d)")
    parser.add_argument("--lock", type=duration, metavar="TIME",
                        help="after so much silence a worker's shards go to others (default: 10s)")
    parser.add_argument("--visibility-timeout", type=duration, metavar="TIME",
                        help="what was received and not acked comes again after this (default: 30s)")
    parser.add_argument("--max-deliveries", type=whole(1, limits.DELIVERIES_MAXIMUM), metavar="N",
                        default=DEFAULT_DELIVERIES,
                        help=f"after so many a message is set aside (default: {DEFAULT_DELIVERIES})")
    parser.add_argument("--dead-letter-queue", metavar="NAME",
                        help=f"where to; none: it goes round for ever (default: the timeline's name and {DEAD_ENDING})")
    add_server_flags(parser)


def _duration_or_none(text: str) -> float | str:
    return "none" if text.lower() in NOTHING else duration(text)


def _add_put(verbs: Any) -> None:
    parser = add_command(
        verbs, "put", "put a message that is due at a time",
        "Puts one message and prints its id. The body is BODY, or what is in a file, or comes from standard input, "
        "byte for byte. Without --due and --delay it is due now; before the timeline's producer delay is over it is "
        "not delivered.",
        """
        angelhair timeline put reminders 'call back' --due '2026-12-24 18:00'
        angelhair timeline put reminders 'are you still there?' --delay 20m""",
        put,
    )
    add_queue(parser)
    parser.add_argument("body", metavar="BODY", nargs="?", help="the body; - or nothing reads standard input")
    parser.add_argument("--file", "-f", metavar="FILE", help="take the body from this file")
    parser.add_argument("--content-type", metavar="TYPE", help="what the body is, as in application/json")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--due", type=due, metavar="TIME",
                      help="when: 2026-11-15T13:00:00Z, or '2026-11-15 13:00' in local time")
    when.add_argument("--delay", type=duration, metavar="TIME", help="in how long: 30s, 5m, 365d")
    parser.add_argument("--quiet", "-q", action="store_true", help="print no id")
    add_server_flags(parser)


def create(arguments: argparse.Namespace) -> int:
    settings: dict[str, Any] = {"kind": TIMELINE, "max_deliveries": arguments.max_deliveries}
    for name in ("shards", "granularity", "producer_delay", "expire_after", "lock", "visibility_timeout"):
        value = getattr(arguments, name)
        if value is not None:
            settings[name] = None if value == "none" else value
    dead: str | None = arguments.dead_letter_queue or f"{arguments.queue}{DEAD_ENDING}"
    if dead is not None and dead.lower() in NOTHING:
        dead = settings["max_deliveries"] = None
    if dead == arguments.queue:
        raise WrongUsage("--dead-letter-queue: cannot be the timeline itself")
    if dead is not None and dead.endswith(FIFO_ENDING):
        raise WrongUsage(f"--dead-letter-queue: nothing is moved from a timeline to a fifo queue, which is what a name "
                         f"that ends with {FIFO_ENDING} means")
    settings["dead_letter_queue"] = dead
    with connected(arguments) as client:
        # The timeline first: if it cannot be made, nothing is.
        made = client.create_queue(arguments.queue, **settings)
        if dead is not None and _make_dead_letter_queue(client, dead):
            # What was missing when it was made is there.
            made = client.create_queue(arguments.queue, **settings)
    if arguments.json:
        print_json(queue_json(made))
    else:
        where = "" if dead is None else f"; what fails {arguments.max_deliveries} times goes to {dead}"
        say(f"timeline {made.name} is there, with {made.settings['shards']} shards{where}")
    for warning in made.warnings:
        complain(arguments.program, f"warning: {warning}")
    return DONE


def _make_dead_letter_queue(client: Client, name: str) -> bool:
    """False when there is one with settings of its own, which are somebody's choice."""
    try:
        client.create_queue(name)
    except QueueExists:
        return False
    return True


def put(arguments: argparse.Namespace) -> int:
    if arguments.body is not None and arguments.file is not None:
        raise WrongUsage("BODY and --file cannot both be given")
    body = body_of(arguments)
    with connected(arguments) as client:
        check_kind(client, arguments.queue)
        id_ = client.timeline(arguments.queue).put(
            body, due=arguments.due, delay=arguments.delay, content_type=arguments.content_type
        )
    if arguments.json:
        print_json({"id": id_, "queue": arguments.queue})
    elif not arguments.quiet:
        print(id_)
    return DONE


def shards(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        check_kind(client, arguments.queue)
        found = client.timeline(arguments.queue).shards()
    if arguments.json:
        print_json({"shards": [_json(shard) for shard in found]})
        return DONE
    titles = ("SHARD", "STATE", "LOCK", "HOLDER", "FENCE", "TAKEN", "TOUCHED", "LAST", "LAG (S)")
    rooms = {"HOLDER": Room.CUT, "STATE": Room.LEFT_OUT, "TAKEN": Room.LEFT_OUT}
    columns = [
        Column(title, numeric=title in ("SHARD", "FENCE", "LAG (S)"), room=rooms.get(title, Room.KEPT))
        for title in titles
    ]
    print_table(columns, [_cells(shard) for shard in found])
    return DONE


def _cells(shard: Shard) -> list[Cell]:
    return [
        shard.shard, shard.state, shard.lock, shard.consumer, shard.fence, shard.taken_at, shard.touched_at, shard.last,
        shard.lag,
    ]


def _json(shard: Shard) -> dict[str, Any]:
    found = shard._asdict()
    for name in ("taken_at", "touched_at", "mark", "last"):
        found[name] = None if found[name] is None else rfc3339(found[name])
    return found
