"""What tests on the real cluster share: one cluster for a whole run, fresh keyspaces on it, stores by the dozen."""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
import os
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from angelhair.stores.cassandra import CassandraSettings, CassandraStore, bootstrap, create_keyspace, open_store
from cluster.disk import DISK
from cluster.maven import ComponentMissing
from cluster.nodes import CassandraCluster

NODES = 3

FOR_WORKERS = "CLUSTER_OF_ALL_TEST_WORKERS"
"""Set for the workers of a parallel run, to the directory of the cluster that has been started for all of them. With a
cluster for each, as many nodes again would share the same cores."""

SHAKEN_ADDRESS = 201
"""Where clusters begin that tests kill and freeze."""


def _worker() -> int:
    """Tests in parallel (pytest -n) that shake a cluster have one for each worker."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@functools.cache
def shared_cluster() -> CassandraCluster:
    """Three nodes, started when first asked for if they were not for all workers, stopped when the tests or the process
    end. Nobody kills them: that is for `cluster_to_shake`."""
    if directory := os.environ.get(FOR_WORKERS):
        cluster = _cluster(1, steady=True, directory=Path(directory))
        cluster.wait_until_answering()
    else:
        cluster = _cluster(1, steady=True)
        atexit.register(cluster.stop)
        cluster.start()
    return cluster


def launch_for_workers() -> None:
    """What runs tests in parallel starts the cluster of all its workers, and stops it when the last of them is done.
    Nobody waits for it yet: the nodes start while the workers look for their tests."""
    try:
        cluster = CassandraCluster(NODES, short_lived=True, steady=True)
    except ComponentMissing:
        return  # the tests say so, each for itself
    cluster.launch()
    os.environ[FOR_WORKERS] = str(cluster.directory)
    atexit.register(cluster.stop)


def cluster_to_shake() -> CassandraCluster:
    """Three nodes whose end can be survived, for `with`."""
    DISK.mkdir(parents=True, exist_ok=True)
    return _cluster(SHAKEN_ADDRESS + NODES * _worker(), steady=False, where=DISK)


def _cluster(
    first_address: int, steady: bool, where: Path | None = None, directory: Path | None = None
) -> CassandraCluster:
    """What is missing on the machine fails the tests in continuous integration and skips them elsewhere."""
    import pytest

    # A node that is killed on purpose is no news; the driver tells it at length, from threads of its own.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    try:
        return CassandraCluster(
            NODES, first_address=first_address, directory=directory, short_lived=True, steady=steady, where=where
        )
    except ComponentMissing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


def stop_shared_cluster() -> None:
    """Whoever runs tests in parallel does not wait for a worker's process to end by itself."""
    if shared_cluster.cache_info().currsize:
        cluster = shared_cluster()
        shared_cluster.cache_clear()
        _shared_keyspaces.clear()
        atexit.unregister(cluster.stop)
        cluster.stop()


def fresh_settings(cluster: CassandraCluster, **changed: Any) -> CassandraSettings:
    """Settings with a keyspace name that nobody has used."""
    settings: dict[str, Any] = {
        "contact_points": tuple(cluster.contact_points),
        "keyspace": f"test_{uuid.uuid4().hex[:16]}",
    }
    return CassandraSettings(**{**settings, **changed})


async def fresh_keyspace(cluster: CassandraCluster) -> str:
    """A keyspace with the schema in place. Schema changes take some seconds: share one, in partitions of your own."""
    settings = fresh_settings(cluster)
    await create_keyspace(settings)
    await bootstrap(settings)
    return settings.keyspace


_shared_keyspaces: list[str] = []


async def shared_keyspace() -> str:
    """One on the shared cluster, for all whose partitions, queues or accounts are their own and whose time is the real
    one: here any server may bury what another has deleted."""
    if not _shared_keyspaces:
        _shared_keyspaces.append(await fresh_keyspace(shared_cluster()))
    return _shared_keyspaces[0]


async def connected_store(cluster: CassandraCluster, keyspace: str, **changed: Any) -> CassandraStore:
    """A store on the running loop; each one is a server of its own. Close it when done."""
    return await open_store(fresh_settings(cluster, keyspace=keyspace, **changed))


async def fresh_store(cluster: CassandraCluster, **changed: Any) -> CassandraStore:
    """A store on a keyspace of its own."""
    return await connected_store(cluster, await fresh_keyspace(cluster), **changed)


class World:
    """Runs a test's coroutines on one loop, with a store that they share."""

    def __init__(self, runner: asyncio.Runner, store: CassandraStore, cluster: CassandraCluster, keyspace: str) -> None:
        self._runner = runner
        self.store = store
        self.cluster = cluster
        self.keyspace = keyspace

    def run(self, test: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._runner.run(test())

    @asynccontextmanager
    async def another(self, **changed: Any) -> AsyncIterator[CassandraStore]:
        """A second server."""
        store = await connected_store(self.cluster, self.keyspace, **changed)
        try:
            yield store
        finally:
            await store.close()
