"""How to reach a Cassandra, and with which guarantees to use it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLContext

from angelhair.errors import InvalidRequest

DEFAULT_PORT = 9042

CONNECT_TIMEOUT_SECONDS = 10.0

REQUEST_TIMEOUT_SECONDS = 6.0
"""Above every default time-out of the server (reads 5 s), so that the coordinator's answer, which knows more than our
own watch, comes first."""

SCHEMA_TIMEOUT_SECONDS = 60.0
"""For changes of the schema: on a busy cluster agreement takes a while."""

KEYSPACE_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
"""What needs no quotes in CQL. Cassandra takes at most 48 characters."""

CONSISTENCY_LEVELS = ("ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE")
SERIAL_LEVELS = ("SERIAL", "LOCAL_SERIAL")


@dataclass(frozen=True, slots=True)
class CassandraSettings:
    contact_points: tuple[str, ...] = ("127.0.0.1",)
    port: int = DEFAULT_PORT
    keyspace: str = "angelhair"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ssl_context: SSLContext | None = None
    data_centre: str | None = None
    """The home data centre; None takes that of the first contact point that answers."""
    read_consistency: str = "LOCAL_QUORUM"
    write_consistency: str = "LOCAL_QUORUM"
    serial_consistency: str = "LOCAL_SERIAL"
    connect_timeout_seconds: float = CONNECT_TIMEOUT_SECONDS
    request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS
    application_name: str = "angelhair"

    def __post_init__(self) -> None:
        if not self.contact_points:
            raise InvalidRequest("contact_points", "at least one address is needed")
        if KEYSPACE_NAME.fullmatch(self.keyspace) is None:
            raise InvalidRequest("keyspace", f"{self.keyspace!r} is not made of lower case letters, digits and _")
        for name, allowed in (
            ("read_consistency", CONSISTENCY_LEVELS),
            ("write_consistency", CONSISTENCY_LEVELS),
            ("serial_consistency", SERIAL_LEVELS),
        ):
            if getattr(self, name) not in allowed:
                raise InvalidRequest(name, f"{getattr(self, name)!r} is none of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class Replication:
    """How many copies in which data centre. Empty means: three in the home data centre, or as many as it has nodes."""

    copies: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for data_centre, count in self.copies.items():
            if count < 1:
                raise InvalidRequest("replication", f"{count} copies in data centre {data_centre!r} keep nothing")
            if "'" in data_centre:
                raise InvalidRequest("replication", f"{data_centre!r} is not the name of a data centre")
