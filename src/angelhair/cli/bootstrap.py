"""`angelhair bootstrap`: makes a Cassandra keyspace ready for servers."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
from typing import Any

from angelhair.cli import opening
from angelhair.cli.config import WRONG_SETTINGS, add_settings_flags, complain, read_settings
from angelhair.cli.parsers import add_command
from angelhair.engine.schema import SCHEMA_VERSION
from angelhair.errors import AngelhairError
from angelhair.server.configuration import SettingsRefused
from angelhair.settings import Settings

FAILED = 1

COPIES = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)=([1-9][0-9]{0,2})")


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "bootstrap", "create Angelhair's tables in a Cassandra keyspace",
        "Creates the tables in the keyspace, or brings those of an older version forward. Running it again changes "
        "nothing. The embedded file needs no bootstrap.",
        """
        angelhair bootstrap --contact-points 10.0.0.1,10.0.0.2 --keyspace queues
        angelhair bootstrap --create-keyspace --replication dc1=3 --contact-points 10.0.0.1 --keyspace queues""",
        run,
    )
    parser.add_argument(
        "--create-keyspace", "-createKeyspace", action="store_true",
        help="create the keyspace first, unless it exists",
    )
    parser.add_argument(
        "--replication", metavar="DC=N,…",
        help="with --create-keyspace: how many copies in which data centre (default: 3 in the home data centre, or as "
        "many as it has nodes)",
    )
    add_settings_flags(parser, ["cassandra"])


def run(arguments: argparse.Namespace) -> int:
    try:
        settings = read_settings(arguments).settings
        copies = parse_replication(arguments.replication)
    except SettingsRefused as refused:
        return complain("bootstrap", refused)
    if copies is not None and not arguments.create_keyspace:
        return _refuse("--replication goes with --create-keyspace only; an existing keyspace keeps what it has")
    if not settings.on_cassandra:
        return _refuse("there are no contact points; a keyspace of Cassandra is bootstrapped, the embedded file needs "
                       "none of it")
    # The driver reports every attempt by itself; what matters comes back as one line.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    try:
        warnings = asyncio.run(bootstrap(settings, (copies or {}) if arguments.create_keyspace else None))
    except AngelhairError as error:
        print(f"angelhair bootstrap: {error}", file=sys.stderr)
        return FAILED
    for warning in warnings:
        print(f"angelhair bootstrap: {warning}", file=sys.stderr)
    print(f"keyspace {settings.keyspace} is ready: schema version {SCHEMA_VERSION}")
    return 0


def parse_replication(text: str | None) -> dict[str, int] | None:
    """Raises `SettingsRefused`. None when nothing was said."""
    if text is None:
        return None
    copies: dict[str, int] = {}
    for part in text.split(","):
        found = COPIES.fullmatch(part.strip())
        if found is None:
            raise SettingsRefused([f"--replication: {part!r} is not DATA_CENTER=COPIES, as in dc1=3,dc2=2"])
        if found.group(1) in copies:
            raise SettingsRefused([f"--replication: names {found.group(1)} twice"])
        copies[found.group(1)] = int(found.group(2))
    return copies


async def bootstrap(settings: Settings, copies: dict[str, int] | None) -> list[str]:
    """Creates the keyspace too unless `copies` is None; empty, it means the default. Returns warnings, each once."""
    wanted = opening.cassandra_settings(settings)

    from angelhair.stores import cassandra

    warnings: list[str] = []
    try:
        if copies is not None:
            warnings += await cassandra.create_keyspace(wanted, cassandra.Replication(copies))
        warnings += await cassandra.bootstrap(wanted)
    except Exception as error:
        raise opening.cassandra_trouble(settings, error) from error
    return list(dict.fromkeys(warnings))


def _refuse(why: str) -> int:
    print(f"angelhair bootstrap: {why}", file=sys.stderr)
    return WRONG_SETTINGS
