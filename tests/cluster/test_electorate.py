"""What is refused and what is warned of at the start: rows 1, 2, 8, 10, and the schema's version."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import Session

from angelhair.clock import SystemClock
from angelhair.engine.members import Holdings, Membership, Presence
from angelhair.engine.schema import MEMBERS, SCHEMA_VERSION, TABLES
from angelhair.engine.store import Table
from angelhair.errors import InvalidRequest, StoreRefused, Unavailable
from angelhair.stores.cassandra import CassandraSettings, Replication, bootstrap, create_keyspace, open_store
from angelhair.stores.cassandra.connect import with_session
from angelhair.stores.cassandra.electorate import levels_overlap
from angelhair.stores.cassandra.inspection import clock_warnings, inspect_nodes, settings_warnings, version_warnings
from angelhair.stores.cassandra.schema import (
    DECISION_TRIES,
    bring_forward,
    check_version,
    read_version,
    settle_meta,
)
from cluster import CassandraCluster
from cluster.testing import connected_store, fresh_settings

HOME = "datacenter1"


def refused(settings: CassandraSettings) -> str:
    with pytest.raises(StoreRefused) as caught:
        asyncio.run(open_store(settings))
    return str(caught.value)


def test_row_02_a_safe_cluster_gives_no_warning(cassandra_cluster: CassandraCluster, keyspace: str) -> None:
    async def warnings() -> list[str]:
        store = await connected_store(cassandra_cluster, keyspace)
        await store.close()
        return store.warnings

    assert asyncio.run(warnings()) == []


def test_rows_01_and_02_an_unsafe_node_is_named_with_what_to_change() -> None:
    with CassandraCluster(
        1, first_address=11, commitlog_sync="periodic", paxos_variant="v1", short_lived=True
    ) as unsafe:
        settings = fresh_settings(unsafe)
        created = asyncio.run(create_keyspace(settings))
        found = asyncio.run(with_session(settings, lambda session, _: inspect_nodes(session, SystemClock())))
    assert len(created) == 1
    assert "1 copy in data centre datacenter1" in created[0]
    assert len(found) == 2
    assert "node 127.0.0.11 has paxos_variant v1: set it to v2" in found[0]
    assert "node 127.0.0.11 has commitlog_sync periodic: CONFIRMED MESSAGES ARE LOST" in found[1]


@pytest.mark.parametrize(
    ("settings", "complaints"),
    [
        ({"paxos_variant": "v2", "commitlog_sync": "batch"}, 0),
        ({"paxos_variant": "v2", "commitlog_sync": "group", "commitlog_sync_group_window": "2ms"}, 0),
        ({"paxos_variant": "v2", "commitlog_sync": "group", "commitlog_sync_group_window": "10ms"}, 1),
        ({"paxos_variant": "v2", "commitlog_sync": "group", "commitlog_sync_group_window": "1s"}, 1),
        ({"paxos_variant": "v2", "commitlog_sync": "group"}, 1),
        ({"paxos_variant": "v2", "commitlog_sync": "periodic"}, 1),
        ({"paxos_variant": "v1", "commitlog_sync": "batch"}, 1),
        ({}, 2),
    ],
)
def test_rows_01_and_02_what_counts_as_safe(settings: dict[str, str], complaints: int) -> None:
    assert len(list(settings_warnings("a node", settings))) == complaints


@pytest.mark.parametrize(
    ("version", "safe"), [("5.0.9", True), ("4.1.6", True), ("4.1.5", False), ("4.0.19", False), ("5.0-rc1", True)]
)
def test_row_02_old_versions_are_named(version: str, safe: bool) -> None:
    assert (list(version_warnings("a node", version)) == []) is safe


def test_row_08_a_clock_that_is_far_off_is_named() -> None:
    assert list(clock_warnings("a node", 1_000_000, 1_000_500, 1_001_000)) == []
    assert list(clock_warnings("a node", 1_000_000, 1_004_000, 1_000_000)) == []
    assert "60.0 s away" in next(clock_warnings("a node", 1_000_000, 1_060_000, 1_000_000))
    assert "60.0 s away" in next(clock_warnings("a node", 1_060_000, 1_000_000, 1_060_500))


def test_row_10_another_serial_level_is_refused(cassandra_cluster: CassandraCluster, keyspace: str) -> None:
    mine = fresh_settings(cassandra_cluster, keyspace=keyspace, serial_consistency="SERIAL")
    assert "two electorates" in refused(mine)


def test_row_10_another_home_is_refused(cassandra_cluster: CassandraCluster, keyspace: str) -> None:
    mine = fresh_settings(cassandra_cluster, keyspace=keyspace)
    assert "there is no data centre elsewhere" in refused(replace(mine, data_centre="elsewhere"))

    def move(home: str) -> None:
        query = f"UPDATE {keyspace}.angelhair SET value = '{home}' WHERE name = 'home_data_centre' IF EXISTS"
        asyncio.run(with_session(mine, lambda session, _: session.execute(query).one()))

    move("elsewhere")
    try:
        assert f"used with data centre elsewhere, this server is set to {HOME}" in refused(mine)
    finally:
        move(HOME)


def test_row_10_levels_that_need_not_meet_are_refused(cassandra_cluster: CassandraCluster, keyspace: str) -> None:
    mine = fresh_settings(cassandra_cluster, keyspace=keyspace, read_consistency="ONE")
    assert "a confirmed message could be missed" in refused(mine)


@pytest.mark.parametrize(
    ("read", "write", "copies", "overlap"),
    [
        ("LOCAL_QUORUM", "LOCAL_QUORUM", {HOME: 3}, True),
        ("LOCAL_ONE", "LOCAL_QUORUM", {HOME: 3}, False),
        ("LOCAL_ONE", "LOCAL_ONE", {HOME: 1}, True),
        ("ONE", "ALL", {HOME: 3}, True),
        ("ONE", "TWO", {HOME: 3}, False),
        ("TWO", "TWO", {HOME: 3}, True),
        ("LOCAL_QUORUM", "LOCAL_QUORUM", {HOME: 3, "other": 3}, True),
        ("QUORUM", "QUORUM", {HOME: 3, "other": 3}, True),
        # Four of six may be three there and one here; two of three here need not meet that one.
        ("LOCAL_QUORUM", "QUORUM", {HOME: 3, "other": 3}, False),
        ("LOCAL_QUORUM", "EACH_QUORUM", {HOME: 3, "other": 3}, True),
        ("LOCAL_QUORUM", "LOCAL_QUORUM", {"other": 3}, True),
    ],
)
def test_row_10_which_levels_overlap(read: str, write: str, copies: dict[str, int], overlap: bool) -> None:
    assert levels_overlap(read, write, HOME, copies) is overlap


def test_a_keyspace_without_schema_is_refused_until_bootstrap(cassandra_cluster: CassandraCluster) -> None:
    settings = fresh_settings(cassandra_cluster)
    assert "run `angelhair bootstrap --create-keyspace`" in refused(settings)
    assert asyncio.run(create_keyspace(settings, Replication({HOME: 2}))) == [
        f"2 copies in data centre {HOME}: below 3, a single node that fails stops the queues"
    ]
    assert "run `angelhair bootstrap`" in refused(settings)


def test_the_schema_is_brought_forward_and_never_back(cassandra_cluster: CassandraCluster) -> None:
    settings = fresh_settings(cassandra_cluster)
    asyncio.run(create_keyspace(settings))
    first = Table("things", conditional=True, key=str, columns={"old": int})
    second = Table("things", conditional=True, key=str, columns={"old": int, "new": bytes}, flags={"flag": int})
    seen: list[object] = []

    def grow(session: object, _: str) -> None:
        bring_forward(session, settings.keyspace, [first], 1)
        bring_forward(session, settings.keyspace, [first], 1)
        bring_forward(session, settings.keyspace, [second], 2)
        seen.append(read_version(session, settings.keyspace))
        rows = session.execute(  # type: ignore[attr-defined]
            "SELECT column_name, kind FROM system_schema.columns WHERE keyspace_name = %s", (settings.keyspace,)
        )
        seen.append({tuple(row) for row in rows} >= {("old", "regular"), ("new", "regular"), ("flag", "static")})
        with pytest.raises(StoreRefused, match="newer than this program's 1"):
            bring_forward(session, settings.keyspace, [first], 1)
        session.execute(  # type: ignore[attr-defined]
            f"UPDATE {settings.keyspace}.angelhair SET value = '{SCHEMA_VERSION + 1}' "
            "WHERE name = 'schema_version' IF EXISTS"
        )

    asyncio.run(with_session(settings, grow))
    assert seen == [2, True]
    assert "newer than this program's" in refused(settings)
    with pytest.raises(StoreRefused, match="newer than this program's"):
        asyncio.run(bootstrap(settings))


def test_a_keyspace_from_before_servers_knew_each_other(cassandra_cluster: CassandraCluster) -> None:
    """Version 7 has a table of members: a server waits for `bootstrap`, and after it an older one is refused."""
    settings = fresh_settings(cassandra_cluster)
    asyncio.run(create_keyspace(settings))
    older = [table for table in TABLES if table is not MEMBERS]
    asyncio.run(with_session(settings, lambda session, _: bring_forward(session, settings.keyspace, older, 6)))
    assert f"has schema version 6, this program needs {SCHEMA_VERSION}; run `angelhair bootstrap`" in refused(settings)
    asyncio.run(bootstrap(settings))

    async def announce() -> list[str]:
        store = await open_store(settings)
        try:
            membership = Membership(store, SystemClock(), "me")
            await membership.step(Presence("http://127.0.0.1:9324", "here", 0, "7", 0), Holdings())
            return [member.id for member in membership.members.alive]
        finally:
            await store.close()

    assert asyncio.run(announce()) == ["me"]
    with pytest.raises(StoreRefused, match=f"has schema version {SCHEMA_VERSION}, newer than this program's 6"):
        asyncio.run(with_session(settings, lambda session, _: check_version(session, settings.keyspace, 6)))


def test_every_table_of_the_engine_can_be_laid_out() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)


def test_nobody_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        asyncio.run(open_store(CassandraSettings(("127.0.0.99",), connect_timeout_seconds=1)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"keyspace": 'x"; DROP KEYSPACE y'},
        {"keyspace": "x" * 49},
        {"contact_points": ()},
        {"read_consistency": "MOST"},
        {"serial_consistency": "QUORUM"},
    ],
    ids=str,
)
def test_settings_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        CassandraSettings(**wrong)  # type: ignore[arg-type]
    assert caught.value.field in wrong


class _LosesAnswers:
    """A session on the real cluster whose first conditional writes are done, and whose answers never arrive."""

    def __init__(self, session: Session, times: int) -> None:
        self._session = session
        self.left = times
        self.ballots = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def execute(self, statement: str, *arguments: Any, **named: Any) -> Any:
        answer = self._session.execute(statement, *arguments, **named)
        if " IF " not in statement or "CREATE" in statement:
            return answer
        self.ballots += 1
        if self.left:
            self.left -= 1
            raise OperationTimedOut()
        return answer


class _ReadsNothing:
    """A session on the real cluster whose reads meet a replica that has heard of nothing yet."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def execute(self, statement: str, *arguments: Any, **named: Any) -> Any:
        if statement.startswith("SELECT"):
            statement = f"{statement} AND value = 'unheard of' ALLOW FILTERING"
        return self._session.execute(statement, *arguments, **named)


def test_a_settlement_whose_answer_was_lost_is_asked_for_again(
    cassandra_cluster: CassandraCluster, keyspace: str, place: str
) -> None:
    def settle(session: Session, _: str) -> None:
        lossy = _LosesAnswers(session, DECISION_TRIES - 1)
        assert settle_meta(lossy, keyspace, place, "first") == "first"
        assert lossy.ballots == DECISION_TRIES
        assert settle_meta(lossy, keyspace, place, "second") == "first"
        assert lossy.ballots == DECISION_TRIES, "what is settled needs no ballot"
        behind = _ReadsNothing(session)
        assert settle_meta(behind, keyspace, place, "second") == "first", "the refusal itself says what was settled"
        deaf = _LosesAnswers(session, DECISION_TRIES)
        with pytest.raises(OperationTimedOut):
            settle_meta(deaf, keyspace, place + " again", "first")
        assert deaf.ballots == DECISION_TRIES

    asyncio.run(with_session(fresh_settings(cassandra_cluster, keyspace=keyspace), settle))
