"""Where a queue's rows lie, in a form that can be sent to tasks: a file, or a Cassandra.

Secrets are not sent. Whoever connects, the driver or a task, takes them from its own environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from angelhair.engine.store import Store
from angelhair.errors import InvalidRequest, StoreRefused
from angelhair.settings import DATABASE_NAME, Settings

if TYPE_CHECKING:
    from angelhair.stores.cassandra import CassandraSettings

TRUTHS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
"""As servers read their environment."""

DEFAULTS = Settings(application_name="angelhair-spark")

PLACE_OPTIONS = {
    "data": "The directory of the embedded file, as `angelhair serve --data` has it.",
    "contactPoints": "Addresses of Cassandra nodes, with commas; by default the environment's CONTACT_POINTS.",
    "keyspace": f"The keyspace on Cassandra; by default the environment's KEYSPACE, or {DEFAULTS.keyspace}.",
    "cassandraPort": f"By default the environment's CASSANDRA_PORT, or {DEFAULTS.cassandra_port}.",
    "dataCenter": "The home data centre; by default the environment's DATA_CENTER.",
    "consistencyLevel": f"By default the environment's CONSISTENCY_LEVEL, or {DEFAULTS.consistency_level}.",
    "useSsl": "Whether Cassandra is spoken to by TLS; by default the environment's USE_SSL, or false.",
    "sslPort": f"The port then; by default the environment's SSL_PORT, or {DEFAULTS.ssl_port}.",
    "sslCa": "The certificates to trust, a file or a directory wherever tasks run; by default the environment's "
    "SSL_CA, or the system's.",
    "sslCheckHostname": "Whether a node's certificate must have its name; by default the environment's "
    "SSL_CHECK_HOSTNAME, or true.",
}
"""Every option that says where the queue is."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file if `path` is set, else a Cassandra."""

    path: str | None = None
    cassandra: Settings = DEFAULTS
    """Without user name, password and key: those are every process's own."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Place:
        """From the options of a read or write; where they say nothing, from the environment that servers use."""
        data = options.get("data")
        if data and options.get("contactpoints"):
            raise InvalidRequest("data", "and contactPoints cannot both be given: the rows are in one of the two")
        if data:
            return cls(path=str(Path(data).absolute() / DATABASE_NAME))
        points = _told(options, "contactPoints") or ""
        contact_points = tuple(point.strip() for point in points.split(",") if point.strip())
        if not contact_points:
            raise InvalidRequest("data", "is missing, and so is contactPoints: where is the queue?")
        return cls.on_cassandra(
            replace(
                DEFAULTS,
                contact_points=contact_points,
                cassandra_port=_port(options, "cassandraPort", DEFAULTS.cassandra_port),
                keyspace=_told(options, "keyspace") or DEFAULTS.keyspace,
                data_center=_told(options, "dataCenter"),
                consistency_level=_told(options, "consistencyLevel") or DEFAULTS.consistency_level,
                use_ssl=_flag(options, "useSsl", DEFAULTS.use_ssl),
                ssl_port=_port(options, "sslPort", DEFAULTS.ssl_port),
                ssl_ca=_told(options, "sslCa"),
                ssl_check_hostname=_flag(options, "sslCheckHostname", DEFAULTS.ssl_check_hostname),
            )
        )

    @classmethod
    def on_cassandra(cls, settings: Settings) -> Place:
        return cls(cassandra=replace(settings, username=None, password=None, ssl_certificate=None, ssl_key=None))

    def as_options(self) -> dict[str, str]:
        """What a read or write on Spark is told, to find it."""
        if self.path is not None:
            return {"data": str(Path(self.path).parent)}
        there = self.cassandra
        told = {
            "contactPoints": ",".join(there.contact_points),
            "keyspace": there.keyspace,
            "cassandraPort": str(there.cassandra_port),
            "dataCenter": there.data_center,
            "consistencyLevel": there.consistency_level,
            "useSsl": str(there.use_ssl).lower(),
            "sslPort": str(there.ssl_port),
            "sslCa": there.ssl_ca,
            "sslCheckHostname": str(there.ssl_check_hostname).lower(),
        }
        return {name: value for name, value in told.items() if value is not None}

    async def open(self, changing: bool = False) -> Store:
        """For the driver: reads marks, not messages. Never makes a file that is not there."""
        if self.path is not None:
            from angelhair.stores import sqlite

            self.check()
            return await (sqlite.open_store(self.path) if changing else sqlite.open_reader(self.path))
        from angelhair.stores import cassandra

        return await cassandra.open_store(self.cassandra_settings())

    def check(self) -> None:
        if self.path is not None and not Path(self.path).exists():
            raise StoreRefused(f"there is no {self.path}: `data` wants what the server has as --data")

    def cassandra_settings(self) -> CassandraSettings:
        from angelhair.stores.cassandra.reaching import reaching

        own = os.environ
        return reaching(
            replace(
                self.cassandra,
                username=own.get("USERNAME") or None,
                password=own.get("PASSWORD") or None,
                ssl_certificate=own.get("SSL_CERTIFICATE") or None,
                ssl_key=own.get("SSL_KEY") or None,
            )
        )


def to_environment(settings: Settings) -> None:
    """What is not sent to tasks, as the flags of a command gave it: tasks on this machine inherit it."""
    secrets = {
        "USERNAME": settings.username,
        "PASSWORD": settings.password,
        "SSL_CERTIFICATE": settings.ssl_certificate,
        "SSL_KEY": settings.ssl_key,
    }
    os.environ.update({name: value for name, value in secrets.items() if value is not None})


def _told(options: Mapping[str, str], name: str) -> str | None:
    """The option, or the environment's variable of the same name: CONTACT_POINTS for contactPoints."""
    variable = "".join(f"_{letter}" if letter.isupper() else letter for letter in name).upper()
    return options.get(name.lower()) or os.environ.get(variable) or None


def _port(options: Mapping[str, str], name: str, default: int) -> int:
    text = _told(options, name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
        raise InvalidRequest(name, f"{text!r} is no port")
    return int(text)


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = _told(options, name)
    if text is None:
        return default
    if text.lower() not in TRUTHS:
        raise InvalidRequest(name, f"{text!r} is neither true nor false")
    return TRUTHS[text.lower()]
