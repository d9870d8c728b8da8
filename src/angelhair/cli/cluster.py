"""`angelhair cluster`: which servers there are."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from angelhair.cli.asking import add_server_flags, connected
from angelhair.cli.exits import DONE
from angelhair.cli.output import Cell, Column, Room, print_json, print_table, rfc3339
from angelhair.cli.parsers import add_command

if TYPE_CHECKING:
    from angelhair.client import Member

_COLUMNS = (
    Column("ADDRESS"), Column("HOST", room=Room.LEFT_OUT), Column("PROCESS", numeric=True, room=Room.LEFT_OUT),
    Column("VERSION"), Column("STARTED"), Column("LANES", numeric=True), Column("SHARDS", numeric=True),
    Column("ID", room=Room.LEFT_OUT),
)


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "cluster", "show which servers there are",
        "Shows every process of every server that works on the same store: where it listens, its version, since when "
        "it is there, and of how many lanes and shards of timelines it does the work. A server that stops is gone at "
        "once, one that dies after a few seconds. docs/cluster.md says more.",
        "angelhair cluster\nangelhair cluster --json", show,
    )
    add_server_flags(parser)


def show(arguments: argparse.Namespace) -> int:
    with connected(arguments) as client:
        cluster = client.cluster()
    members = sorted(cluster.members, key=lambda member: (member.host, member.address, member.process, member.id))
    if arguments.json:
        print_json({"server": cluster.server, "members": [_json(member) for member in members]})
    else:
        print_table(_COLUMNS, [_cells(member) for member in members])
    return DONE


def _cells(member: Member) -> list[Cell]:
    return [
        member.address, member.host, member.process, member.version, member.started_at, member.lanes, member.shards,
        member.id,
    ]


def _json(member: Member) -> dict[str, Any]:
    return {**member._asdict(), "started_at": rfc3339(member.started_at)}
