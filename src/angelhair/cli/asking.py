"""The way to the server that a command asks."""

from __future__ import annotations

import argparse
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from angelhair import limits
from angelhair.cli.exits import UNAVAILABLE, Ended, WrongUsage
from angelhair.cli.parsers import duration
from angelhair.server.installing import to_install

if TYPE_CHECKING:
    from angelhair.client import AsyncClient, Client

DEFAULT_SERVER = "http://127.0.0.1:9324"
"""Where `angelhair serve` listens unless told otherwise."""

SERVER_VARIABLE = "ANGELHAIR_SERVER"

CA_VARIABLE = "SSL_CERT_FILE"
"""OpenSSL's own name for it."""


def add_server_flags(parser: argparse.ArgumentParser) -> None:
    """--json, and all about the server that is asked."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = add_place_flags(parser)
    group.add_argument(
        "--retry", type=duration, metavar="TIME", default=limits.COMMAND_RETRY_SECONDS,
        help="how long to go on trying while it is unavailable; 0: once "
        f"(default: {limits.COMMAND_RETRY_SECONDS:g}s)",
    )


def add_place_flags(parser: argparse.ArgumentParser) -> Any:
    """Where the server is; the group, for more."""
    group = parser.add_argument_group("the server")
    group.add_argument(
        "--server", metavar="URL", help=f"where it is [{SERVER_VARIABLE}] (default: {DEFAULT_SERVER})"
    )
    group.add_argument(
        "--ca", metavar="FILE",
        help=f"for https, trust the authorities in this file [{CA_VARIABLE}] (default: those that browsers trust)",
    )
    return group


def server_url(arguments: argparse.Namespace) -> str:
    """Raises `WrongUsage`."""
    origin = "--server" if arguments.server else SERVER_VARIABLE
    url: str = arguments.server or os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER
    try:
        parts = urlsplit(url)
        # Reading the port is what finds a wrong one.
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        good = good and not parts.query and not parts.fragment
        good = good and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        good = False
    if not good:
        raise WrongUsage(f"{origin}: {url!r} is not the address of a server, such as {DEFAULT_SERVER}")
    return url


def certificates(arguments: argparse.Namespace) -> ssl.SSLContext | bool:
    """What httpx is to verify a server by."""
    # The HTTP library would read the variable too, and not say whose file is missing.
    origin, file = ("--ca", arguments.ca) if arguments.ca else (CA_VARIABLE, os.environ.get(CA_VARIABLE))
    if not file:
        return True
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        raise WrongUsage(f"{origin}: {file} cannot be used: {error.strerror or error}") from error


@contextmanager
def connected(arguments: argparse.Namespace) -> Iterator[Client]:
    options = _options(arguments)
    with _module().Client(**options) as client:
        yield client


def connected_async(arguments: argparse.Namespace, *, retrying: bool = True) -> AsyncClient:
    options = _options(arguments)
    client: AsyncClient = _module().AsyncClient(**options if retrying else {**options, "retry": None})
    return client


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    url, verify = server_url(arguments), certificates(arguments)
    retry = _module().Retry(total_seconds=arguments.retry) if arguments.retry else None
    return {"url": url, "retry": retry, "verify": verify}


def _module() -> Any:
    """Only now: what does not ask a server does not wait for the HTTP library, nor need it."""
    try:
        from angelhair import client
    except ModuleNotFoundError as error:
        raise Ended(
            UNAVAILABLE, f"{error.name} is not installed, which speaks to servers; {to_install()}"
        ) from error
    return client
