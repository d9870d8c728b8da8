"""Several processes of one server on a real Cassandra, from an empty keyspace on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from angelhair.stores.cassandra import create_keyspace
from cluster import CassandraCluster
from cluster.testing import fresh_settings
from tests.wire.processes import play, several


def test_one_dies_and_is_replaced_and_nothing_is_lost(cassandra_cluster: CassandraCluster, tmp_path: Path) -> None:
    """Naive: connect, then fork. The driver's sockets and threads belong to the parent."""
    wanted = fresh_settings(cassandra_cluster)
    asyncio.run(create_keyspace(wanted))
    complaints = tmp_path / "complaints"
    places = ("--contact-points", ",".join(wanted.contact_points), "--keyspace", wanted.keyspace)
    with several(complaints, *places) as server:
        play(server, complaints)
    created = f"angelhair serve: keyspace {wanted.keyspace} was empty; its tables have been created\n"
    assert created in complaints.read_text()
