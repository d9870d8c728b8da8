"""What must go together, once every value by itself is right."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from angelhair.server.configuration.said import Origin
from angelhair.settings import Settings, is_loopback


def problems_together(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> Iterator[str]:
    if values["contact_points"] and values["data"] is not None:
        yield (
            f"{origins['data']} asks for the embedded file and {origins['contact_points']} for Cassandra: "
            "a server has one store; give one of the two"
        )
    for needy, needed in (("tls_key", "tls_certificate"), ("ssl_key", "ssl_certificate"), ("password", "username")):
        if values[needy] is not None and values[needed] is None:
            yield f"{origins[needy]}: is of no use without {needed}"
    if values["use_metrics_graphite"] and values["graphite_url"] is None:
        yield f"{origins['use_metrics_graphite']}: metrics go to Graphite, but graphite_url does not say where it is"


def serving_problem(settings: Settings) -> str | None:
    """What keeps these settings from being served, unless the store has access keys."""
    if settings.open or is_loopback(settings.host):
        return None
    return (
        f"without access keys only the loopback address is served, and {settings.host} is not one; make one with "
        f"`{_first_key(settings)}`, or start with --open to serve everybody who can reach this machine"
    )


def open_warning(settings: Settings) -> str | None:
    """What is said loudly at the start, unless the store has access keys."""
    if not settings.open or is_loopback(settings.host):
        return None
    return (
        f"OPEN: no access keys, and {settings.host} is not the loopback address: "
        "EVERYBODY WHO CAN REACH THIS PORT MAY READ, WRITE AND DELETE EVERYTHING"
    )


def development_warning(settings: Settings) -> str:
    """The same where only this machine is served."""
    return (
        "no access keys: any signature passes, and everybody on this machine may do everything. "
        f"The first key ends that: {_first_key(settings)}"
    )


def _first_key(settings: Settings) -> str:
    """The command that makes it in this store: without its place it would make one in another."""
    words = ["angelhair", "key", "create"]
    if settings.on_cassandra:
        words += ["--contact-points", ",".join(settings.contact_points), "--keyspace", settings.keyspace]
    elif settings.data is not None:
        words += ["--data", settings.data]
    return shlex.join(words)
