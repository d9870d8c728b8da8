"""Lays the engine's tables out in a keyspace, and brings an older layout forward.

Nothing is ever renamed or removed, so one function does both: it creates the tables and columns that are missing, then
records the version. A keyspace that a newer Angelhair has brought forward is refused.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cassandra import DriverException
from cassandra.cluster import Session
from cassandra.policies import HostDistance
from cassandra.pool import Host
from cassandra.protocol import ErrorMessage

from angelhair.engine.schema import SCHEMA_VERSION, TABLES
from angelhair.engine.store import Table
from angelhair.errors import StoreRefused, Unavailable
from angelhair.stores.cassandra.errors import refused_as_such
from angelhair.stores.cassandra.layout import CQL_TYPES, column_types
from angelhair.stores.cassandra.settings import SCHEMA_TIMEOUT_SECONDS

META = "angelhair"
"""What the keyspace knows of itself: name, value. Only ever written conditionally."""

VERSION_NAME = "schema_version"

DAY_SECONDS = 86_400

GRACE_OF_TRUTH_SECONDS = 10 * DAY_SECONDS
"""How long a tombstone stays in conditional tables: Cassandra's default. Unset columns and deleted rows there mean
something (a freed name, a lease given back), so every replica must hear of them: repair at least this often."""

GRACE_OF_WRITE_ONCE_SECONDS = DAY_SECONDS
"""In plain tables nothing but whole partitions ever goes, and nothing reads a partition once it has gone (the floor has
passed it, R14). One that a forgetful replica brings back costs space and no message; a wake that comes back is a look
into a bucket that is not there. A day is longer than hints live (3 hours), which spares replicas most of that."""

_WRITE_ONCE = (
    "{'class': 'SizeTieredCompactionStrategy', 'unchecked_tombstone_compaction': 'true', 'tombstone_threshold': '0.1', "
    "'tombstone_compaction_interval': '3600'}"
)
"""Bodies, states, wakes, logs: written in the order of time, read while young, dropped whole. Merging by size rewrites
a row the fewest times; the other options let a file that is mostly dropped partitions be cleaned without waiting for
partners of its size."""

_OVERWRITTEN = "{'class': 'LeveledCompactionStrategy'}"
"""Catalog, sequences, pointers, leases, keys: few rows, overwritten all the time, read one by one. Levels keep a row in
one or two files, where tiers would leave a version of it in each."""

SCRIBE_LOOKS = 200
SCRIBE_LOOK_SECONDS = 0.1
"""How long to wait for a connection to the node that changes the schema: twice the driver's own patience."""


AGREEMENT_SECONDS = 60
AGREEMENT_LOOK_SECONDS = 0.1
AGREEMENT_LOOKS = int(AGREEMENT_SECONDS / AGREEMENT_LOOK_SECONDS)
"""How long to wait until every node has the schema. Idle ones take about a second, which is how often they gossip."""


DECISION_TRIES = 5
"""How often a conditional write on the keyspace's own table is asked for. Servers that begin together meet there."""


_SEEN_STAYS_SEEN = "read_repair = 'BLOCKING'"
"""Cassandra's default. Without it a queue or a topic that one read has found may be hidden from the next."""


class SchemaMissing(StoreRefused):
    """The keyspace is there and empty: whoever may create tables in it may go on with `bootstrap`."""


_WRITE_ONCE_TABLES = frozenset({"bodies", "states", "wakes", "logs"})


def create_table(keyspace: str, table: Table) -> str:
    columns = ", ".join(f'"{name}" {kind}' for name, kind in column_types(table).items())
    compaction = _WRITE_ONCE if table.name in _WRITE_ONCE_TABLES else _OVERWRITTEN
    grace_seconds = GRACE_OF_TRUTH_SECONDS if table.conditional else GRACE_OF_WRITE_ONCE_SECONDS
    return (
        f'CREATE TABLE IF NOT EXISTS "{keyspace}"."{table.name}" ("partition" text, "key" {CQL_TYPES[table.key]}, '
        f'{columns}, PRIMARY KEY ("partition", "key")) WITH compaction = {compaction} '
        f"AND gc_grace_seconds = {grace_seconds} AND {_SEEN_STAYS_SEEN}"
    )


def bring_forward(session: Session, keyspace: str, tables: Sequence[Table] = TABLES,
                  version: int = SCHEMA_VERSION) -> None:
    """Creates the schema, or adds what a version that is older than ours lacks. Several servers that start at once on
    an empty keyspace may all do it, through one node; see `_scribe`."""
    scribe = _scribe(session)
    # The scribe has made a change when it answers. Until the others have it takes a second: once at the end is enough.
    session.cluster.max_schema_agreement_wait = 0

    def ask(statement: str, parameters: Sequence[str] = ()) -> Any:
        return session.execute(statement, parameters or None, timeout=SCHEMA_TIMEOUT_SECONDS, host=scribe)

    ask(
        f'CREATE TABLE IF NOT EXISTS "{keyspace}"."{META}" (name text PRIMARY KEY, value text) '
        f"WITH compaction = {_OVERWRITTEN} AND gc_grace_seconds = {GRACE_OF_TRUTH_SECONDS} AND {_SEEN_STAYS_SEEN}"
    )
    _agree(session, scribe)
    found = read_version(session, keyspace)
    if found is not None and found > version:
        raise _newer(keyspace, found, version)
    if found == version:
        return
    for table in tables:
        ask(create_table(keyspace, table))
        present = {
            row[0]
            for row in ask(
                "SELECT column_name FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s",
                (keyspace, table.name),
            )
        }
        for name, kind in column_types(table).items():
            if name not in present:
                ask(f'ALTER TABLE "{keyspace}"."{table.name}" ADD IF NOT EXISTS "{name}" {kind}')
    _agree(session, scribe)
    _record_version(session, keyspace, found, version)


def _scribe(session: Session) -> Host:
    """The node that makes every change of the schema, the same one for whoever asks.

    One node does one change after the other and sees what is there. Two nodes that create a table at the same time make
    two tables of one name; when they hear of each other one of them goes, with all that was written into it.
    """
    for _ in range(SCRIBE_LOOKS):
        near = [
            host for host in session.cluster.metadata.all_hosts()
            if host.is_up is not False and session.cluster.profile_manager.distance(host) != HostDistance.IGNORED
        ]
        first = min(near, key=lambda host: str(host.address), default=None)
        # A session connects to the other nodes after it has begun with one; a node that cannot be reached is then down.
        if first is not None and first in {pool.host for pool in session.get_pools()}:
            return first
        time.sleep(SCRIBE_LOOK_SECONDS)
    raise Unavailable("the node that the schema has to be changed on cannot be reached")


def _agree(session: Session, scribe: Host) -> None:
    """Waits until every node that is up has the schema of the node that changes it.

    The scribe is asked. The driver would ask the node of its control connection, and one that has not yet heard of a
    change finds that all agree, on what was before it.
    """
    for _ in range(AGREEMENT_LOOKS):
        versions = {row[0] for row in session.execute("SELECT schema_version FROM system.local", host=scribe)}
        for peer, address, version in session.execute(
            "SELECT peer, rpc_address, schema_version FROM system.peers", host=scribe
        ):
            node = session.cluster.metadata.get_host(address or peer)
            if node is not None and node.is_up is not False and version is not None:
                versions.add(version)
        if len(versions) == 1:
            return
        time.sleep(AGREEMENT_LOOK_SECONDS)
    raise Unavailable(f"the nodes did not agree on the schema within {AGREEMENT_SECONDS} s")


def check_version(session: Session, keyspace: str, version: int = SCHEMA_VERSION) -> None:
    """Refuses a keyspace whose layout is not the one this program was written for."""
    known = session.execute(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s", (keyspace, META)
    )
    found = read_version(session, keyspace) if known.one() is not None else None
    if found is None:
        raise SchemaMissing(f"keyspace {keyspace} has no schema of Angelhair; run `angelhair bootstrap` first")
    if found < version:
        raise StoreRefused(
            f"keyspace {keyspace} has schema version {found}, this program needs {version}; run `angelhair bootstrap`"
        )
    if found > version:
        raise _newer(keyspace, found, version)


def read_version(session: Session, keyspace: str) -> int | None:
    value = read_meta(session, keyspace, VERSION_NAME)
    return None if value is None else int(value)


def read_meta(session: Session, keyspace: str, name: str) -> str | None:
    row = session.execute(f'SELECT value FROM "{keyspace}"."{META}" WHERE name = %s', (name,)).one()
    return None if row is None else row[0]


def settle_meta(session: Session, keyspace: str, name: str, value: str) -> str:
    """Writes the value if the keyspace has none yet; the one that it has then. Whoever finds one needs no ballot:
    servers that start together do not outbid each other."""
    known = read_meta(session, keyspace, name)
    if known is not None:
        return known
    statement = f'INSERT INTO "{keyspace}"."{META}" (name, value) VALUES (%s, %s) IF NOT EXISTS'
    return _decided(session, statement, (name, value)) or value


def _record_version(session: Session, keyspace: str, found: int | None, version: int) -> None:
    if found is None:
        settled = int(settle_meta(session, keyspace, VERSION_NAME, str(version)))
    else:
        statement = f'UPDATE "{keyspace}"."{META}" SET value = %s WHERE name = %s IF value = %s'
        settled = int(_decided(session, statement, (str(version), VERSION_NAME, str(found))) or version)
    if settled > version:
        raise _newer(keyspace, settled, version)


def _decided(session: Session, statement: str, parameters: Sequence[str]) -> str | None:
    """The value that stood in the way of a conditional write, as the refusal has it: a read at another level may know
    less. None when the write took effect. One that met a time-out is asked for again, and may be refused by itself."""

    def ask() -> str | None:
        # Whether it was applied; when refused, then the row, whose last column is the value.
        applied, *row = session.execute(statement, parameters).one()
        return None if applied else str(row[-1])

    for _ in range(DECISION_TRIES - 1):
        try:
            return ask()
        except (DriverException, ErrorMessage) as error:
            if refused_as_such(error):
                raise
    return ask()


def _newer(keyspace: str, found: int, version: int) -> StoreRefused:
    return StoreRefused(
        f"keyspace {keyspace} has schema version {found}, newer than this program's {version}: run a newer Angelhair"
    )
