"""`angelhair doctor` on a real Cassandra: what is good, what is not there, and what would be voted on elsewhere."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from cluster import CassandraCluster
from cluster.testing import shared_cluster, shared_keyspace
from tests.cli.command import Angelhair, Said

pytestmark = pytest.mark.cassandra

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def cassandra() -> CassandraCluster:
    return shared_cluster()


@pytest.fixture(scope="module")
def keyspace() -> str:
    return asyncio.run(shared_keyspace())


def look(cassandra: CassandraCluster, keyspace: str, *more: str, expect: int = 0) -> Said:
    points = ",".join(cassandra.contact_points)
    return Angelhair(NOWHERE)(
        "doctor", "--no-server", "--contact-points", points, "--keyspace", keyspace, *more, expect=expect
    )


def wrong(said: Said) -> dict[str, str]:
    return {name: found for verdict, name, found in said.rows if verdict == "wrong"}


def test_all_is_good(cassandra: CassandraCluster, keyspace: str) -> None:
    said = look(cassandra, keyspace)
    assert {verdict for verdict, _, _ in said.rows} == {"good"}
    of_nodes = [
        f"{node} {what}" for node in sorted(cassandra.contact_points)
        for what in ("version", "commit log", "paxos", "clock")
    ]
    assert [name for _, name, _ in said.rows] == [
        "cassandra reachable", "replication", "schema version", "electorate", *of_nodes,
    ]
    assert "commitlog_sync batch" in said.out
    assert "paxos_variant v2" in said.out


def test_levels_that_need_not_meet(cassandra: CassandraCluster, keyspace: str) -> None:
    said = look(cassandra, keyspace, "--consistency-level", "ONE", expect=1)
    assert list(wrong(said)) == ["electorate"]
    assert "need not meet" in wrong(said)["electorate"]


def test_another_serial_level(cassandra: CassandraCluster, keyspace: str) -> None:
    said = look(cassandra, keyspace, "--serial-consistency-level", "SERIAL", expect=1)
    assert "is used with serial consistency LOCAL_SERIAL" in wrong(said)["electorate"]


def test_a_keyspace_that_is_not_there(cassandra: CassandraCluster) -> None:
    said = look(cassandra, f"test_{uuid.uuid4().hex[:16]}", expect=1)
    assert "bootstrap --create-keyspace" in wrong(said)["replication"]
    assert "clock" in said.out, "the nodes are looked at all the same"


def test_a_data_center_that_is_not_there(cassandra: CassandraCluster, keyspace: str) -> None:
    said = look(cassandra, keyspace, "--data-center", "atlantis", expect=1)
    assert "atlantis" in wrong(said)["cassandra reachable"]
