"""What a server is told: one frozen object. `server/configuration` reads it from flags, environment and file."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

ACCOUNT = "000000000000"
"""Whose queues a server without access keys serves."""

REGION = "us-east-1"
"""What stands in the ARNs of queues for clients that do not say where they think we are."""

DEFAULT_DATA = "angelhair-data"
"""Where the embedded file goes when nobody says: in sight, beside where the server was started."""

DATABASE_NAME = "angelhair.db"
"""The embedded file, under the data directory."""

DEFAULT_GRAPHITE_PORT = 2003
"""Carbon's plain text port."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Units last in names; None means that it was not said."""

    # --- the doors
    host: str = "127.0.0.1"
    port: int = 9324
    """0 takes any that is free."""
    open: bool = False
    """Serve other addresses than the loopback without access keys."""
    workers: int = 1
    """Processes. On Cassandra each is a server of its own; on one file they share it."""
    tls_certificate: str | None = None
    tls_key: str | None = None
    stop_grace_seconds: float = 10.0
    """How long requests under way may take when the server stops."""
    databag_sync_seconds: float = 30.0
    """How often settings and partitions of databags are taken over from the store."""
    public_url: str | None = None
    """What links in messages of topics begin with; None takes the name by which a publisher called the server."""
    allow_private_endpoints: bool = False
    """Post messages of topics to addresses of this machine and its networks, too."""

    # --- the embedded store
    data: str | None = None
    """The directory of the embedded file."""

    # --- Cassandra
    contact_points: tuple[str, ...] = ()
    keyspace: str = "angelhair"
    cluster_name: str | None = None
    """A name for people: it shows in what the server tells, and is not compared with the cluster's own."""
    cassandra_port: int = 9042
    auth_provider: str = "plainText"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    consistency_level: str = "LOCAL_QUORUM"
    """Of reads and of writes."""
    serial_consistency_level: str = "LOCAL_SERIAL"
    data_center: str | None = None
    use_ssl: bool = False
    ssl_port: int = 9043
    ssl_ca: str | None = None
    """A file or a directory of certificates to trust; None trusts those of the system."""
    ssl_certificate: str | None = None
    ssl_key: str | None = None
    ssl_check_hostname: bool = True

    # --- what it tells
    log_level: str = "info"
    log_format: str = "json"
    access_log: bool = False
    """A line for every request, at the level `info`."""
    application_name: str = "angelhair"
    use_metrics_graphite: bool = False
    graphite_url: str | None = None
    graphite_prefix: str | None = None
    otlp_endpoint: str | None = None

    @property
    def on_cassandra(self) -> bool:
        return bool(self.contact_points)

    @property
    def store_port(self) -> int:
        """The port that Cassandra is spoken to on."""
        return self.ssl_port if self.use_ssl else self.cassandra_port

    @property
    def graphite_address(self) -> tuple[str, int] | None:
        """Host and port; None when metrics are not sent."""
        if not self.use_metrics_graphite or self.graphite_url is None:
            return None
        return host_and_port(self.graphite_url, DEFAULT_GRAPHITE_PORT)


def host_and_port(text: str, default_port: int) -> tuple[str, int]:
    """Takes `host`, `host:port`, `[address]:port`, each with or without `tcp://` before it."""
    rest = text.removeprefix("tcp://").rstrip("/")
    if rest.startswith("["):
        host, closed, port = rest[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise ValueError(f"{text!r} is not host:port")
        port = port[1:]
    elif rest.count(":") > 1:
        host, port = rest, ""
    else:
        host, colon, port = rest.partition(":")
        if colon and not port:
            raise ValueError(f"{text!r} is not host:port")
    if not host or (port and not (port.isascii() and port.isdecimal())):
        raise ValueError(f"{text!r} is not host:port")
    return host, int(port) if port else default_port


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. Of names only `localhost` is believed: another may move house."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
