"""A look at a keyspace and its nodes, point by point, for people: changes nothing and refuses nothing.

`open_store` goes by the same rules; here each has its own finding, so that one that fails does not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable, Session
from cassandra.protocol import ErrorMessage

from angelhair.clock import Clock, SystemClock
from angelhair.errors import StoreRefused
from angelhair.stores.cassandra.connect import copies_of, with_session
from angelhair.stores.cassandra.electorate import HOME_NAME, SERIAL_NAME, copies_warnings, levels_overlap
from angelhair.stores.cassandra.errors import in_words
from angelhair.stores.cassandra.inspection import clock_warnings, settings_warnings, version_warnings
from angelhair.stores.cassandra.schema import check_version, read_meta, read_version
from angelhair.stores.cassandra.settings import CassandraSettings


class Finding(NamedTuple):
    name: str
    problems: tuple[str, ...]
    found: str
    looked: bool = True
    """False: it could not be looked at; `found` says why."""


async def examine(settings: CassandraSettings, clock: Clock | None = None) -> list[Finding]:
    """Raises as `open_store` does when Cassandra is not reached."""

    def work(session: Session, home: str) -> list[Finding]:
        return [*_keyspace(session, settings, home), *_nodes(session, clock or SystemClock())]

    return await with_session(settings, work)


def _keyspace(session: Session, settings: CassandraSettings, home: str) -> Iterator[Finding]:
    copies: Mapping[str, int] | None = None
    try:
        copies = copies_of(session, settings.keyspace, home)
        said = ", ".join(f"{count} in {data_centre}" for data_centre, count in sorted(copies.items()))
        yield Finding("replication", tuple(copies_warnings(home, copies)), f"copies: {said}")
    except StoreRefused as error:
        yield Finding("replication", (str(error),), "")
        return
    try:
        check_version(session, settings.keyspace)
        yield Finding("schema version", (), str(read_version(session, settings.keyspace)))
    except StoreRefused as error:
        yield Finding("schema version", (str(error),), "")
        return
    yield _electorate(session, settings, home, copies)


def _electorate(session: Session, settings: CassandraSettings, home: str, copies: Mapping[str, int]) -> Finding:
    problems = [
        f"the keyspace is used with {what} {remembered}, and this is set to {mine}"
        for name, mine, what in (
            (HOME_NAME, home, "data centre"), (SERIAL_NAME, settings.serial_consistency, "serial consistency"),
        )
        if (remembered := read_meta(session, settings.keyspace, name)) not in (None, mine)
    ]
    levels = f"reads at {settings.read_consistency}, writes at {settings.write_consistency}"
    if not levels_overlap(settings.read_consistency, settings.write_consistency, home, copies):
        problems.append(f"{levels} need not meet: a confirmed message could be missed")
    return Finding("electorate", tuple(problems), f"{settings.serial_consistency} in {home}, {levels}")


def _nodes(session: Session, clock: Clock) -> Iterator[Finding]:
    for host in sorted(session.cluster.metadata.all_hosts(), key=lambda host: str(host.address)):
        node = str(host.address)
        yield from _seen(f"{node} version", _version, session, host, node)
        yield from _seen(f"{node} settings", _settings, session, host, node)
        yield from _seen(f"{node} clock", _clock, session, host, node, clock)


def _seen(name: str, look: Callable[..., list[Finding]], *arguments: Any) -> list[Finding]:
    try:
        return look(*arguments)
    except (DriverException, NoHostAvailable, ErrorMessage, OSError) as error:
        return [Finding(name, (), in_words(error), looked=False)]


def _version(session: Session, host: Any, node: str) -> list[Finding]:
    version = str(session.execute("SELECT release_version FROM system.local", host=host).one()[0])
    return [Finding(f"{node} version", tuple(version_warnings(node, version)), f"Cassandra {version}")]


def _settings(session: Session, host: Any, node: str) -> list[Finding]:
    rows = session.execute(
        "SELECT name, value FROM system_views.settings WHERE name IN "
        "('paxos_variant', 'commitlog_sync', 'commitlog_sync_group_window')",
        host=host,
    )
    found = {row[0]: row[1] for row in rows}
    paxos, commit_log = f"{node} paxos", f"{node} commit log"
    warnings = list(settings_warnings(node, found))
    of_paxos = tuple(warning for warning in warnings if "paxos_variant" in warning)
    of_log = tuple(warning for warning in warnings if "paxos_variant" not in warning)
    return [
        Finding(commit_log, of_log, f"commitlog_sync {found.get('commitlog_sync')}"),
        Finding(paxos, of_paxos, f"paxos_variant {found.get('paxos_variant')}"),
    ]


def _clock(session: Session, host: Any, node: str, clock: Clock) -> list[Finding]:
    before_ms = clock.now().wall_ms
    node_ms = int(session.execute("SELECT toUnixTimestamp(now()) FROM system.local", host=host).one()[0])
    after_ms = clock.now().wall_ms
    error_ms = max(before_ms - node_ms, node_ms - after_ms, 0)
    warnings = tuple(clock_warnings(node, before_ms, node_ms, after_ms))
    return [Finding(f"{node} clock", warnings, f"{error_ms} ms away from this machine's, or less")]
