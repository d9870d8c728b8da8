"""`angelhair repair`: where a queue's pointers stand, what is in its buckets, and having buckets looked into again."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from angelhair import limits
from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE, WrongUsage, complain
from angelhair.cli.output import Column, on_terminal, print_json, print_result, print_table
from angelhair.cli.parsers import add_command, add_group, add_queue, whole

if TYPE_CHECKING:
    from angelhair.client import Client

LANES_SIDE_BY_SIDE = 6
"""What fits into 80 columns while the numbers have up to eight digits."""

_COLOURS = {
    "open": "cyan", "closed": "blue", "final": "yellow", "settled": "green", "finished": "green", "dropped": "dim",
}


def add_to(commands: Any) -> None:
    verbs = add_group(
        commands, "repair", "see where repair stands, and have it look again",
        "Shows a queue's pointers and buckets, and has buckets looked into again.",
    )
    parser = add_command(
        verbs, "show", "show a queue's pointers, or its buckets",
        "Shows, for every lane, the next id and where the pointers stand: the buckets that are read, final, settled, "
        "passed by repair, below the floor, dropped and archived, and the ids purged. With --buckets: a lane's "
        "buckets, their state and what is in them.",
        """
        angelhair repair show orders
        angelhair repair show orders --buckets --first 120 --count 10""",
        show,
    )
    add_queue(parser)
    parser.add_argument("--buckets", action="store_true", help="the buckets of a lane in place of the pointers")
    _add_lane(parser)
    parser.add_argument("--first", type=whole(0), metavar="BUCKET",
                        help="with --buckets: from this one on (default: the first that is kept)")
    parser.add_argument("--count", "-n", type=whole(1, limits.STATS_BUCKETS), metavar="N",
                        help=f"with --buckets: at most so many (default: {limits.STATS_BUCKETS})")
    add_server_flags(parser)

    parser = add_command(
        verbs, "move-back", "have buckets looked into again",
        "Moves the repair pointer of a lane back, so that it looks into buckets again from this one on; not below the "
        "floor, where nothing is kept. Prints where the pointer stands now. It does no harm.",
        "angelhair repair move-back orders 117", move_back,
    )
    add_queue(parser)
    parser.add_argument("bucket", metavar="BUCKET", type=whole(0), help="the bucket's number: id // bucket_size")
    _add_lane(parser)
    add_server_flags(parser)


def _add_lane(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lane", type=whole(0), metavar="LANE", help="which lane (default: the only one)")


def show(arguments: argparse.Namespace) -> int:
    if not arguments.buckets:
        for option in ("lane", "first", "count"):
            if getattr(arguments, option) is not None:
                raise WrongUsage(f"--{option} goes with --buckets only")
    with connected(arguments) as client:
        if arguments.buckets:
            _show_buckets(client, arguments)
        else:
            _show_pointers(client, arguments)
    return DONE


def _show_pointers(client: Client, arguments: argparse.Namespace) -> None:
    lanes = client.pointers(arguments.queue)
    if arguments.json:
        print_json({"lanes": [lane._asdict() for lane in lanes]})
        return
    if not on_terminal(sys.stdout):
        print_table([], lanes)
        return
    # A line for each pointer: side by side their names take more room than most terminals have.
    for first in range(0, len(lanes), LANES_SIDE_BY_SIDE):
        some = lanes[first : first + LANES_SIDE_BY_SIDE]
        columns = [Column("POINTER"), *(Column(f"LANE {lane.lane}", numeric=True) for lane in some)]
        print_table(columns, [(name, *(getattr(lane, name) for lane in some)) for name in some[0]._fields[1:]])


def _show_buckets(client: Client, arguments: argparse.Namespace) -> None:
    lane = _lane(client, arguments)
    buckets = client.buckets(arguments.queue, lane, first=arguments.first, count=arguments.count)
    if arguments.json:
        print_json({"lane": lane, "buckets": [bucket._asdict() for bucket in buckets]})
        return
    names = buckets[0]._fields if buckets else ()
    columns = [
        Column(name.upper().replace("_", " "), numeric=name != "state", style=_colour if name == "state" else None)
        for name in names
    ]
    print_table(columns, buckets)


def _colour(state: str) -> str:
    return _COLOURS.get(state, "")


def move_back(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        lane = _lane(client, arguments)
        pointer = client.move_back(arguments.queue, lane, arguments.bucket)
    if arguments.json:
        print_json({"lane": lane, "repair": pointer})
    else:
        print_result(pointer, f"the repair pointer of lane {lane} stands at bucket {pointer}")
    if pointer < arguments.bucket:
        complain(arguments.program, f"nothing was moved: repair has not come to bucket {arguments.bucket} of lane "
                 f"{lane} yet, its pointer stands at {pointer}")
    elif pointer > arguments.bucket:
        complain(arguments.program, f"bucket {arguments.bucket} of lane {lane} is gone; repair looks again from bucket "
                 f"{pointer} on, the first that is kept")
    return DONE


def _lane(client: Client, arguments: argparse.Namespace) -> int:
    if arguments.lane is not None:
        return int(arguments.lane)
    lanes = [each.lane for each in client.pointers(arguments.queue)]
    if len(lanes) != 1:
        raise WrongUsage(f"queue {arguments.queue!r} has lanes {', '.join(map(str, lanes))}; say which with --lane")
    return lanes[0]
