"""From settings to a store: connects, checks what must hold, refuses what must not be used, and says what is unsafe."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cassandra import ConsistencyLevel, DriverException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.connection import ConnectionException
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    RetryPolicy,
    TokenAwarePolicy,
)
from cassandra.protocol import ErrorMessage
from cassandra.query import tuple_factory

from angelhair.clock import Clock, SystemClock
from angelhair.errors import StoreRefused, Unavailable
from angelhair.stores.cassandra.electorate import COPIES_WANTED, check_electorate, copies_warnings
from angelhair.stores.cassandra.errors import in_words
from angelhair.stores.cassandra.inspection import inspect_nodes
from angelhair.stores.cassandra.schema import bring_forward, check_version
from angelhair.stores.cassandra.settings import SCHEMA_TIMEOUT_SECONDS, CassandraSettings, Replication
from angelhair.stores.cassandra.store import CHANGE, READ, SERIAL_READ, WRITE, CassandraStore

RECONNECT_FIRST_SECONDS = 0.5
RECONNECT_MOST_SECONDS = 10.0
"""The driver's own bound is ten minutes: a node that is back would stand idle for that long."""

HEARTBEAT_SECONDS = 5
"""How often a silent connection is tried, and how long it may take to answer: then a frozen node is left alone."""

SCHEMA_AGREEMENT_SECONDS = 60
"""How long a schema change waits until every node has it. Nodes that are busy take longer than the driver's ten."""

USUAL_NEWS = ("Downgrading core protocol version", "Using datacenter")
"""How the driver's log lines begin that come several times at every start and ask nobody to do anything."""

Result = TypeVar("Result")


def _is_news(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(USUAL_NEWS)


for _name in ("cassandra.cluster", "cassandra.policies"):
    logging.getLogger(_name).addFilter(_is_news)


async def open_store(settings: CassandraSettings, clock: Clock | None = None) -> CassandraStore:
    """A store on a keyspace that `bootstrap` has prepared. Raises `StoreRefused` when it must not be used as it is,
    `Unavailable` when it cannot be reached."""

    def prepare(session: Session, home: str) -> list[str]:
        copies = copies_of(session, settings.keyspace, home)
        check_version(session, settings.keyspace)
        check_electorate(session, settings, home, copies)
        return copies_warnings(home, copies) + inspect_nodes(session, clock or SystemClock())

    cluster = _cluster(settings)
    try:
        session, home = await _reached(lambda: _connect(cluster, settings))
        warnings = await _reached(lambda: prepare(session, home))
        return CassandraStore(cluster, session, settings.keyspace, warnings)
    except BaseException:
        await asyncio.to_thread(cluster.shutdown)
        raise


async def create_keyspace(settings: CassandraSettings, replication: Replication | None = None) -> list[str]:
    """Creates the keyspace unless it exists; an existing one keeps its replication. Returns warnings."""

    def create(session: Session, home: str) -> list[str]:
        copies = (replication or Replication()).copies or {home: min(COPIES_WANTED, _nodes_in(session, home))}
        options = ", ".join(f"'{data_centre}': {count}" for data_centre, count in copies.items())
        session.execute(
            f'CREATE KEYSPACE IF NOT EXISTS "{settings.keyspace}" WITH replication = '
            f"{{'class': 'NetworkTopologyStrategy', {options}}} AND durable_writes = true",
            timeout=SCHEMA_TIMEOUT_SECONDS,
        )
        return copies_warnings(home, copies_of(session, settings.keyspace, home))

    return await with_session(settings, create)


async def bootstrap(settings: CassandraSettings) -> list[str]:
    """Creates the schema, or brings an older one forward, and settles the electorate. Returns warnings."""

    def create(session: Session, home: str) -> list[str]:
        copies = copies_of(session, settings.keyspace, home)
        bring_forward(session, settings.keyspace)
        check_electorate(session, settings, home, copies)
        return copies_warnings(home, copies)

    return await with_session(settings, create)


async def connected(settings: CassandraSettings) -> Session:
    """A bare session on a keyspace whose schema is ours, for who reads much and changes nothing; it is the caller's."""
    cluster = _cluster(settings)
    try:
        session, _ = await _reached(lambda: _connect(cluster, settings))
        await _reached(lambda: check_version(session, settings.keyspace))
        return session
    except BaseException:
        await asyncio.to_thread(cluster.shutdown)
        raise


async def with_session(settings: CassandraSettings, work: Callable[[Session, str], Result]) -> Result:
    """Runs blocking work, which is handed a session and the home data centre, on a connection of its own."""
    cluster = _cluster(settings)
    try:
        session, home = await _reached(lambda: _connect(cluster, settings))
        return await _reached(lambda: work(session, home))
    finally:
        await asyncio.to_thread(cluster.shutdown)


async def _reached(work: Callable[[], Result]) -> Result:
    """Runs blocking work of the driver on a thread; what it raises means that Cassandra was not reached."""
    try:
        return await asyncio.to_thread(work)
    except (DriverException, NoHostAvailable, ConnectionException, ErrorMessage, OSError) as error:
        raise Unavailable(in_words(error)) from error


class _OnceMoreElsewhere(RetryPolicy):  # type: ignore[misc]
    """Reads only: they may be repeated, and another node may well answer."""

    def on_read_timeout(self, *arguments: Any, retry_num: int, **named: Any) -> tuple[int, None]:
        return self._once(retry_num)

    def on_unavailable(self, *arguments: Any, retry_num: int, **named: Any) -> tuple[int, None]:
        return self._once(retry_num)

    def on_request_error(self, *arguments: Any, retry_num: int, **named: Any) -> tuple[int, None]:
        return self._once(retry_num)

    def _once(self, retry_num: int) -> tuple[int, None]:
        return (self.RETRY_NEXT_HOST if retry_num == 0 else self.RETHROW), None


class _Roomy(Cluster.connection_class):  # type: ignore[misc]
    """The driver's own connection takes and gives 4 KiB at a time, and around each the interpreter's lock goes to and
    fro: for a bucket of a thousand messages some 75 times."""

    in_buffer_size = out_buffer_size = 64 * 1024


def _cluster(settings: CassandraSettings) -> Cluster:
    def profile(level: str, retry: RetryPolicy, shuffled: bool) -> ExecutionProfile:
        near = DCAwareRoundRobinPolicy(local_dc=settings.data_centre or "")
        return ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(near, shuffle_replicas=shuffled),
            retry_policy=retry,
            consistency_level=ConsistencyLevel.name_to_value[level],
            serial_consistency_level=ConsistencyLevel.name_to_value[settings.serial_consistency],
            request_timeout=settings.request_timeout_seconds,
            row_factory=tuple_factory,
        )

    never = FallthroughRetryPolicy()
    credentials = None
    if settings.user is not None:
        credentials = PlainTextAuthProvider(username=settings.user, password=settings.password or "")
    return Cluster(
        list(settings.contact_points),
        connection_class=_Roomy,
        max_schema_agreement_wait=SCHEMA_AGREEMENT_SECONDS,
        port=settings.port,
        auth_provider=credentials,
        ssl_context=settings.ssl_context,
        execution_profiles={
            EXEC_PROFILE_DEFAULT: profile(settings.write_consistency, never, False),
            READ: profile(settings.read_consistency, _OnceMoreElsewhere(), True),
            WRITE: profile(settings.write_consistency, never, True),
            # Not shuffled: ballots of one partition that start on one node queue there and do not outbid each other.
            CHANGE: profile(settings.write_consistency, never, False),
            SERIAL_READ: profile(settings.serial_consistency, never, False),
        },
        # Without this, whatever is larger than a packet waits 40 ms for the one before to be acknowledged.
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        connect_timeout=settings.connect_timeout_seconds,
        control_connection_timeout=settings.connect_timeout_seconds,
        idle_heartbeat_interval=HEARTBEAT_SECONDS,
        idle_heartbeat_timeout=HEARTBEAT_SECONDS,
        reconnection_policy=ExponentialReconnectionPolicy(RECONNECT_FIRST_SECONDS, RECONNECT_MOST_SECONDS),
        schema_metadata_enabled=True,
        application_name=settings.application_name,
    )


def _connect(cluster: Cluster, settings: CassandraSettings) -> tuple[Session, str]:
    """A session, and the home data centre."""
    try:
        session = cluster.connect()
    except NoHostAvailable as error:
        # With a data centre that is not there the driver finds nodes, and none that it may use.
        known = {host.datacenter for host in cluster.metadata.all_hosts() if host.datacenter is not None}
        if settings.data_centre is None or not known or settings.data_centre in known:
            raise
        raise StoreRefused(
            f"there is no data centre {settings.data_centre}; the nodes are in {', '.join(sorted(known))}"
        ) from error
    home = settings.data_centre or session.execute("SELECT data_center FROM system.local").one()[0]
    return session, str(home)


def _nodes_in(session: Session, data_centre: str) -> int:
    return sum(host.datacenter == data_centre for host in session.cluster.metadata.all_hosts())


def copies_of(session: Session, keyspace: str, home: str) -> Mapping[str, int]:
    """How many replicas the keyspace has in each data centre."""
    row = session.execute(
        "SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = %s", (keyspace,)
    ).one()
    if row is None:
        raise StoreRefused(f"there is no keyspace {keyspace}; run `angelhair bootstrap --create-keyspace` first")
    if not row[1]:
        raise StoreRefused(f"keyspace {keyspace} has durable_writes off: nothing that is confirmed would survive")
    options = dict(row[0])
    strategy = str(options.pop("class")).rpartition(".")[2]
    if strategy == "NetworkTopologyStrategy":
        return {data_centre: int(count) for data_centre, count in options.items()}
    data_centres = {host.datacenter for host in session.cluster.metadata.all_hosts()}
    if strategy == "SimpleStrategy" and data_centres == {home}:
        return {home: int(options["replication_factor"])}
    raise StoreRefused(f"keyspace {keyspace} is replicated by {strategy}; NetworkTopologyStrategy is needed")
