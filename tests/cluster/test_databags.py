"""The bar for databags on a real Cassandra: three servers as processes, 1,000 partitions, eight consumers; one server
killed -9 and one added; and settings that come in force everywhere (A1, D2, D3, D4, D7)."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import pytest

from angelhair.engine.store import Store
from bench.processes import Running, on_cassandra
from cluster import CassandraCluster
from cluster.testing import connected_store, fresh_keyspace
from tests.cluster.databag_bar import Bar, partitions_of, play_incidents, play_quietly
from tests.cluster.databag_watch import Watch

SERVERS = 3
BAR = Bar(messages=20_000)

SYNC_SECONDS = 1.0
"""Of servers whose settings are changed; the usual one is longer."""

T = TypeVar("T")


@pytest.fixture(scope="module")
def keyspace(cassandra_cluster: CassandraCluster) -> str:
    """Where no other test's servers work: they would take their share of the partitions."""
    return asyncio.run(fresh_keyspace(cassandra_cluster))


@pytest.fixture(scope="module")
def servers(cassandra_cluster: CassandraCluster, keyspace: str) -> Iterator[list[Running]]:
    with on_cassandra(cassandra_cluster.contact_points, keyspace, SERVERS) as running:
        yield running


def with_store(cluster: CassandraCluster, keyspace: str, work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        store = await connected_store(cluster, keyspace)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


@pytest.fixture
def syncing(cassandra_cluster: CassandraCluster, keyspace: str) -> Iterator[list[Running]]:
    """Servers that take over settings often."""
    flags = ("--databag-sync-seconds", f"{SYNC_SECONDS:g}")
    with on_cassandra(cassandra_cluster.contact_points, keyspace, SERVERS, flags) as running:
        yield running


def change(server: Running, queue: str, **settings: Any) -> None:
    server.call("PATCH", f"/queues/{queue}", json.dumps(settings).encode())


def in_force_everywhere(servers: Sequence[Running], queue: str, wanted: dict[str, Any]) -> float:
    """How long after a change, which was answered just now, the last server says so. One that is asked when a sync is
    over must say so at once."""
    answered = time.monotonic()
    for number, server in enumerate(servers):
        while True:
            asked = time.monotonic()
            found = partitions_of(server, queue)
            if {name: found[name] for name in wanted} == wanted:
                break
            assert asked - answered <= SYNC_SECONDS, f"server {number} has {found}, not {wanted}"
    return time.monotonic() - answered


def test_d04_what_is_changed_is_in_force_on_every_server_within_one_sync(
    cassandra_cluster: CassandraCluster, keyspace: str, syncing: Sequence[Running]
) -> None:
    queue = f"synced-{uuid.uuid4().hex[:8]}"
    before = {"min_partitions": 100, "max_partitions": 200, "visibility_timeout": 30}
    syncing[0].create_queue(queue, kind="databag", **before)
    for server in syncing:
        found = partitions_of(server, queue)
        assert (found["count"], found["sync"]) == (100, SYNC_SECONDS)
    took = []
    steps: list[tuple[dict[str, Any], int]] = [
        ({"visibility_timeout": 7}, 100),
        ({"min_partitions": 150}, 150),
        ({"min_partitions": 40}, 40),
        ({"max_partitions": 60}, 40),
        ({"min_partitions": 300, "max_partitions": 300, "visibility_timeout": 20}, 300),
        ({"min_partitions": 5, "max_partitions": 20}, 5),
    ]
    for number, (settings, count) in enumerate(steps):
        asked = syncing[number % SERVERS]
        change(asked, queue, **settings)
        assert settings.items() <= json.loads(asked.call("GET", f"/queues/{queue}"))["settings"].items(), "at once"
        took.append(in_force_everywhere(syncing, queue, {**settings, "count": count}))
    print(f"databag: in force on {SERVERS} servers after {', '.join(f'{seconds:.2f}' for seconds in took)} s")

    async def locked_for(store: Store) -> set[int]:
        watch = await Watch.over(store, queue)
        await watch.look()
        return {serving.duration_ms for serving in watch.servings.values()}

    for server in syncing:
        server.call("PUT", f"/queues/{queue}/messages", json.dumps([{"body": "x"}] * 200).encode())
        assert json.loads(server.call("GET", f"/queues/{queue}/messages/10"))["messages"]
    assert with_store(cassandra_cluster, keyspace, locked_for) == {20_000}, "by whichever server"


def test_d3_d7_in_the_quiet_case_every_message_is_seen_once_and_what_is_locked_serves_nothing(
    cassandra_cluster: CassandraCluster, keyspace: str, servers: Sequence[Running]
) -> None:
    """D2, D3, D7"""
    report = with_store(cassandra_cluster, keyspace, lambda store: play_quietly(servers, store, BAR))
    print(report)
    assert report.complaints == []


# The last one that these servers play: one of them is dead then.
def test_a01_d7_one_server_killed_and_one_added_under_load(
    cassandra_cluster: CassandraCluster, keyspace: str, servers: Sequence[Running]
) -> None:
    """A1, D2, D7"""
    with ExitStack() as added:

        def add() -> Running:
            (running,) = added.enter_context(on_cassandra(cassandra_cluster.contact_points, keyspace))
            return running

        report = with_store(cassandra_cluster, keyspace, lambda store: play_incidents(servers, add, store, BAR))
    print(report)
    assert report.complaints == []
