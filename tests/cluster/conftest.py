"""Fixtures of the tests that need the real thing: three nodes, one keyspace, stores on the test's own loop."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from cluster import CassandraCluster
from cluster.testing import World, connected_store, shared_cluster, shared_keyspace


@pytest.fixture(scope="session")
def cassandra_cluster() -> CassandraCluster:
    return shared_cluster()


@pytest.fixture(scope="session")
def keyspace() -> str:
    return asyncio.run(shared_keyspace())


@pytest.fixture
def place() -> str:
    """The beginning of partition keys that no other test uses: cheaper than a keyspace of one's own."""
    return uuid.uuid4().hex


@pytest.fixture(scope="module")
def world(cassandra_cluster: CassandraCluster, keyspace: str) -> Iterator[World]:
    with asyncio.Runner() as runner:
        store = runner.run(connected_store(cassandra_cluster, keyspace))
        yield World(runner, store, cassandra_cluster, keyspace)
        runner.run(store.close())
