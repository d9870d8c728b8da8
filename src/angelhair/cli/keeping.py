"""Commands that work on the store itself, with no server between: whoever can reach it may."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from angelhair.cli.config import WRONG_SETTINGS, add_settings_flags, read_settings
from angelhair.cli.exits import FAILED, Ended, complain
from angelhair.engine.store import Store
from angelhair.server.configuration import SettingsRefused

T = TypeVar("T")


def add_store_flags(parser: argparse.ArgumentParser) -> None:
    """--json, and where the store is."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    # All that may be said about a store takes fifteen lines, and stands below in any case.
    usage = parser.format_usage()
    indent = " " * len(f"usage: {parser.prog} ")
    parser.usage = f"{usage.removeprefix('usage: ')}{indent}[--data DIR | --contact-points A,B,… …]"
    add_settings_flags(parser, ["embedded", "cassandra"])


def with_store(arguments: argparse.Namespace, work: Callable[[Store], Awaitable[T]], makes: bool = False) -> T:
    """Opens the store that these flags, the environment or a file name, as a server with the same would. One that is
    not there is made, and that is said, if `makes`: the first key may come before the first server."""
    from angelhair.cli.opening import database_path, is_there, open_store

    try:
        settings = read_settings(arguments).settings
    except SettingsRefused as refused:
        raise Ended(WRONG_SETTINGS, "; ".join(refused.problems)) from refused
    if not is_there(settings):
        place = database_path(settings).parent
        if not makes:
            raise Ended(FAILED, f"there is no store in {place}; --data says where it is")
        complain(arguments.program, f"there was no store in {place}; a new one is made there")
    # The driver reports every attempt by itself; what matters comes back as one line.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)

    async def opened() -> T:
        store = await open_store(settings)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(opened())


def rfc3339_or_none(time_ms: int) -> Any:
    """As the REST door writes times; None for the account that was never made."""
    from angelhair.server.rest.times import rfc3339

    return rfc3339(time_ms) if time_ms else None
