"""The bar for timelines on a real Cassandra: six workers as processes, one killed -9, one stopped for longer than its
lock; and a look at what is really in the tables (W1, W2, W3, W5, W6, W8, W9)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from angelhair import Client
from angelhair.engine import catalog
from angelhair.settings import ACCOUNT
from bench.processes import Running, on_cassandra
from cluster import CassandraCluster
from cluster.testing import World, fresh_keyspace
from tests.killed.timeline_bar import SHARDS, Bar, play_incidents, play_sharing

BAR = Bar(messages=20_000, seconds=30.0, lock_seconds=10.0, lead_seconds=10.0)
SERVERS = 2
MINUTE_MS = 60_000
TIME_DIGITS = 12
"""Hexadecimal, of 48 bits of milliseconds, with which the key of a row begins."""


@pytest.fixture(scope="module")
def keyspace(cassandra_cluster: CassandraCluster) -> str:
    """Where no other test's servers work: they would take part in the background."""
    return asyncio.run(fresh_keyspace(cassandra_cluster))


@pytest.fixture(scope="module")
def servers(cassandra_cluster: CassandraCluster, keyspace: str) -> Iterator[list[Running]]:
    with on_cassandra(cassandra_cluster.contact_points, keyspace, SERVERS) as running:
        yield running


def test_w05_w06_w09_twenty_thousand_messages_a_kill_and_a_stop(
    world: World, servers: list[Running], tmp_path: Path
) -> None:
    """W1, W2, W3, W5, W6, W9"""
    with Client(servers[0].url) as client:
        report = play_incidents(client, [server.url for server in servers], tmp_path, BAR)
    print(report)
    look_into_the_tables(world, report.queue, BAR.messages)


def time_in(key: str) -> int:
    return int(key.replace("-", "")[:TIME_DIGITS], 16)


def look_into_the_tables(world: World, queue: str, messages: int) -> None:
    """By CQL, past the engine."""
    session = world.store._bridge._session
    keyspace = f'"{world.keyspace}"'
    incarnation = ""

    async def find() -> None:
        nonlocal incarnation
        found = await catalog.load(world.store, ACCOUNT, queue)
        assert found is not None
        incarnation = found.incarnation

    world.run(find)
    fences = []
    for lane in range(SHARDS):
        where = f"partition = '{incarnation}.{lane}'"
        ((fence, mark, last, duration),) = session.execute(
            f"SELECT fence, mark, last, duration FROM {keyspace}.shards WHERE {where} AND key = 'shard'"
        )
        fences.append(fence)
        assert time_in(last) <= mark, "nothing is processed beyond what may no longer be put"
        assert duration == BAR.lock_seconds * 1000
    assert all(fence >= 1 for fence in fences)
    assert sum(fences) > SHARDS, "some changed hands"
    rows, lanes, parts, lives = [], set(), set(), set()
    for partition, key, life in session.execute(f"SELECT partition, key, ttl(body) FROM {keyspace}.dues"):
        owner, lane, part = partition.split(".")
        if owner == incarnation:
            rows.append(key)
            lanes.add(int(lane))
            parts.add(int(part))
            lives.add(life is not None)
            assert uuid.UUID(key).version == 7
            assert time_in(key) // MINUTE_MS == int(part)
    assert len(rows) >= messages, "nothing is deleted (W1)"
    assert len(set(rows)) == len(rows)
    assert lanes == set(range(SHARDS))
    assert lives == {True}, "every row expires by itself"
    print(f"timeline: fences {fences}, {len(rows):,} rows in {len(parts)} minutes of {len(lanes)} shards")


def test_w08_shards_are_shared_and_taken_over(servers: list[Running], tmp_path: Path) -> None:
    """W8"""
    with Client(servers[0].url) as client:
        print(play_sharing(client, servers[0].url, tmp_path, BAR))
