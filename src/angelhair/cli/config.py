"""`angelhair config`: what is in force and where each value came from. And the flags that other commands share."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Collection
from typing import Any

from angelhair.cli.exits import complain as complain_once
from angelhair.cli.output import on_terminal, print_table
from angelhair.cli.parsers import add_command
from angelhair.server.configuration import Resolved, SettingsRefused, open_warning, resolve, serving_problem
from angelhair.server.configuration.fields import DEFAULTS, FIELDS, PASSWORD_FILE, SECTIONS, Field
from angelhair.server.configuration.kinds import YesNo

WRONG_SETTINGS = 2
"""The exit code when nothing was tried, because of what was asked."""

HIDDEN = "(hidden)"

_DESTINATION = "setting_"
"""Keeps the settings apart from a command's own options."""


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "config", "show the settings in force and where they come from",
        "Shows what `angelhair serve` with the same flags, environment and file would go by, and where each value was "
        "said. Secrets are hidden. Exits with 2 when it could not start.",
        """
        angelhair config
        KEYSPACE=queues angelhair config --contact-points 10.0.0.1,10.0.0.2
        angelhair config --config /data/conf --json""",
        run,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_settings_flags(parser)


def add_settings_flags(parser: argparse.ArgumentParser, sections: Collection[str] = tuple(SECTIONS)) -> None:
    """The settings of these sections as flags, and --config. `read_settings` reads them back."""
    # --pass must not become --password-file, nor mean something else once there are more settings.
    parser.allow_abbrev = False
    parser.add_argument(
        "--config", dest=f"{_DESTINATION}config", metavar="FILE",
        help="read settings from this YAML file, or from the only one in this directory (default: the one in "
        "/data/conf, if there is one)",
    )
    for section in sections:
        group = parser.add_argument_group(SECTIONS[section])
        for field in FIELDS:
            if field.section == section:
                _add_flag(group, field)


def _add_flag(group: Any, field: Field) -> None:
    destination = f"{_DESTINATION}{field.name}"
    default = DEFAULTS[field.name]
    names = ", ".join(field.environment) or field.own_variable
    said = f"{field.help} [{names}]"
    if field.secret:
        group.add_argument(
            f"--{PASSWORD_FILE.replace('_', '-')}", dest=f"{_DESTINATION}{PASSWORD_FILE}", metavar="FILE",
            help=f"the file that has the password in it [{names}: the password itself]",
        )
        # Taken, to be refused with a reason: people will try it.
        group.add_argument(field.flag, dest=destination, help=argparse.SUPPRESS)
    elif isinstance(field.kind, YesNo):
        group.add_argument(
            field.flag, dest=destination, action=argparse.BooleanOptionalAction, default=None,
            help=f"{said} (default: {'yes' if default else 'no'})",
        )
    else:
        shown = f" (default: {_plain(default)})" if default not in (None, ()) else ""
        group.add_argument(field.flag, dest=destination, metavar=field.kind.wanted, help=said + shown)


def _plain(value: object) -> object:
    """10 for 10.0, which is how people write it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_settings(arguments: argparse.Namespace) -> Resolved:
    """Raises `SettingsRefused`."""
    flags = {
        name.removeprefix(_DESTINATION): value
        for name, value in vars(arguments).items()
        if name.startswith(_DESTINATION) and value is not None
    }
    return resolve(flags, os.environ)


def complain(command: str, refused: SettingsRefused) -> int:
    """One line for each problem; the exit code."""
    for problem in refused.problems:
        print(f"angelhair {command}: {problem}", file=sys.stderr)
    return WRONG_SETTINGS


def run(arguments: argparse.Namespace) -> int:
    try:
        resolved = read_settings(arguments)
    except SettingsRefused as refused:
        return complain("config", refused)
    if arguments.json:
        print(json.dumps(as_json(resolved), indent=2))
    else:
        _print(resolved)
    problem = serving_problem(resolved.settings)
    if problem is not None and not _keys_there(resolved):
        return complain("config", SettingsRefused([problem]))
    return 0


def _keys_there(resolved: Resolved) -> bool:
    from angelhair.cli.opening import keys_there

    return asyncio.run(keys_there(resolved.settings))


def as_json(resolved: Resolved) -> dict[str, Any]:
    return {
        "store": "cassandra" if resolved.settings.on_cassandra else "embedded",
        "file": None if resolved.file is None else str(resolved.file),
        "settings": {
            field.name: {
                "value": _value(resolved, field),
                "layer": resolved.origins[field.name].layer.name.lower(),
                "from": resolved.origins[field.name].name or None,
            }
            for field in FIELDS
        },
        "ignored": [{"from": one.origin.name, "why": one.why} for one in resolved.ignored],
    }


def _print(resolved: Resolved) -> None:
    rows = as_rows(resolved)
    if on_terminal(sys.stdout):
        titles = ("SETTING", "VALUE", "FROM")
        first, second = (max(len(row[column]) for row in (titles, *rows)) for column in (0, 1))
        for name, value, origin in (titles, *rows):
            print(f"{name:{first}}  {value:{second}}  {origin}".rstrip())
    else:
        print_table([], rows)
    for one in resolved.ignored:
        complain_once("angelhair config", f"ignored: {one}")
    warning = open_warning(resolved.settings)
    if warning is not None and not _keys_there(resolved):
        complain_once("angelhair config", warning)


def as_rows(resolved: Resolved) -> list[tuple[str, str, str]]:
    """What does not count is left out: Cassandra's settings on the embedded file, SSL's without SSL, and so on."""
    rows = []
    for field in FIELDS:
        if field.parent is not None and not getattr(resolved.settings, field.parent):
            continue
        if field.name in {"data", "contact_points"} and _value(resolved, field) in (None, []):
            continue
        rows.append((field.name, _shown(_value(resolved, field)), str(resolved.origins[field.name])))
    return rows


def _value(resolved: Resolved, field: Field) -> Any:
    value = getattr(resolved.settings, field.name)
    if field.secret:
        return None if value is None else HIDDEN
    return list(value) if isinstance(value, tuple) else _plain(value)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(value)
        case _:
            return str(value)
