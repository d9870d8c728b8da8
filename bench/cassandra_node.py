"""One Cassandra node for the benchmarks, with the safe commit log or not at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.sheet import Unsafe
from cluster import CassandraCluster
from cluster.testing import connected_store, fresh_keyspace

FIRST_ADDRESS = 61
"""Away from the clusters of the tests and proofs."""

SETTINGS = "one node, commitlog_sync: batch, read back from the node"


@dataclass(frozen=True)
class Node:
    cluster: CassandraCluster
    keyspace: str

    @property
    def contact_points(self) -> list[str]:
        return list(self.cluster.contact_points)


@contextmanager
def cassandra_node() -> Iterator[Node]:
    """A node with a fresh keyspace. Raises `Unsafe` when a confirmation there would not be one."""
    # The driver reports every attempt on a port that is not open yet.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    with CassandraCluster(1, first_address=FIRST_ADDRESS, commitlog_sync="batch") as cluster:
        keyspace = asyncio.run(fresh_keyspace(cluster))
        asyncio.run(_check(cluster, keyspace))
        yield Node(cluster, keyspace)


async def _check(cluster: CassandraCluster, keyspace: str) -> None:
    """What the node itself says of its commit log, among other dangers."""
    store = await connected_store(cluster, keyspace)
    await store.close()
    unsafe = [warning for warning in store.warnings if "commitlog_sync" in warning or "inspected" in warning]
    if unsafe:
        raise Unsafe(f"Cassandra: {'; '.join(unsafe)}")
