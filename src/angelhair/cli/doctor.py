"""`angelhair doctor`: checks a server and its store, with a verdict on each."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from typing import Any

from angelhair.cli.asking import add_place_flags, certificates, server_url
from angelhair.cli.checks import Check, Verdict
from angelhair.cli.config import add_settings_flags, complain, read_settings
from angelhair.cli.exits import DONE, FAILED, WrongUsage
from angelhair.cli.output import Column, Room, print_json, print_table
from angelhair.cli.parsers import add_command
from angelhair.server.configuration import Resolved, SettingsRefused
from angelhair.server.configuration.said import Layer

COULD_NOT_LOOK = 2

_COLOURS = {Verdict.GOOD.value: "green", Verdict.WRONG.value: "bold red", Verdict.UNKNOWN.value: "yellow"}


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "doctor", "check a server and its store",
        "Checks that a server can be reached and is ready. With --data or --contact-points (or their variables, or a "
        "file) also looks at the store itself: whether it can be reached, its schema, how safely it writes, its clock, "
        "its copies, its space. Changes nothing. Exits with 0 when all is good, 1 when something is wrong, 2 when it "
        "could not look. Elsewhere than on a terminal: verdict, check and what was found, tab-separated.",
        """
        angelhair doctor
        angelhair doctor --no-server --data ./angelhair-data
        angelhair doctor --contact-points 10.0.0.1,10.0.0.2 --keyspace angelhair --json""",
        run,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = add_place_flags(parser)
    group.add_argument("--no-server", action="store_true", help="look at the store only")
    add_settings_flags(parser, ["embedded", "cassandra"])


def run(arguments: argparse.Namespace) -> int:
    try:
        resolved = read_settings(arguments)
    except SettingsRefused as refused:
        complain("doctor", refused)
        return COULD_NOT_LOOK
    looks: list[Callable[[], Iterator[Check]]] = []
    if not arguments.no_server:
        looks.append(_server(arguments))
    looks += _store(resolved)
    if not looks:
        raise WrongUsage("--no-server leaves nothing to check without --data or --contact-points")
    checks = [check for look in looks for check in look()]
    if arguments.json:
        print_json({
            "good": all(check.verdict is Verdict.GOOD for check in checks),
            "checks": [
                {"check": check.name, "verdict": check.verdict.value, "found": check.found} for check in checks
            ],
        })
    else:
        columns = [Column("VERDICT", style=lambda text: _COLOURS.get(text, "")), Column("CHECK"),
                   Column("FOUND", room=Room.WRAPPED)]
        print_table(columns, [[check.verdict.value, check.name, check.found] for check in checks])
    return _code(checks)


def _server(arguments: argparse.Namespace) -> Callable[[], Iterator[Check]]:
    url, verify = server_url(arguments), certificates(arguments)

    def look() -> Iterator[Check]:
        from angelhair.cli.doctor_server import look

        return look(url, verify)

    return look


def _store(resolved: Resolved) -> list[Callable[[], Iterator[Check]]]:
    settings = resolved.settings
    if settings.on_cassandra:
        from angelhair.cli.doctor_cassandra import look

        # The driver reports every attempt by itself; what matters becomes a check.
        logging.getLogger("cassandra").setLevel(logging.CRITICAL)
        return [lambda: look(settings)]
    if resolved.origins["data"].layer is not Layer.DEFAULT:
        from angelhair.cli.doctor_file import look as look_at_file

        return [lambda: look_at_file(settings)]
    return []


def _code(checks: list[Check]) -> int:
    verdicts = {check.verdict for check in checks}
    if Verdict.WRONG in verdicts:
        return FAILED
    return COULD_NOT_LOOK if Verdict.UNKNOWN in verdicts else DONE
