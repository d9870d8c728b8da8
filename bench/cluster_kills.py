"""The stages of the part `cluster-kills`: the bare store and whole servers, with the safe commit log and without."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster import CassandraCluster
from cluster.configuration import CommitLogSync
from cluster.killing import Toll
from cluster.killing import kill_all_under_load as kill_under_store_load
from cluster.testing import fresh_keyspace
from tests.cluster.engine_load import AllKilled
from tests.cluster.engine_load import kill_all_under_load as kill_under_engine_load

CONFIRMED_EACH = 400
"""Puts that are confirmed before each kill."""

CONTROL_KILLS = 20
"""At most; the control ends with its first loss. Only what every replica wrote after its last mark in the log is lost,
so not every kill costs something."""

NODES = 3

FIRST_ADDRESS = 51
"""Away from the clusters of the tests and of the benchmarks."""

Figures = dict[str, Any]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Stage:
    title: str
    commitlog_sync: CommitLogSync
    control: bool
    """Must lose."""
    engine: bool

    def run(self, kills: int, progress: Progress) -> Figures:
        # A node that is killed on purpose is no news; the driver tells it at length, from threads of its own.
        logging.getLogger("cassandra").setLevel(logging.CRITICAL)
        logging.getLogger("angelhair").setLevel(logging.CRITICAL)
        with CassandraCluster(NODES, first_address=FIRST_ADDRESS, commitlog_sync=self.commitlog_sync) as cluster:
            work = self._engine if self.engine else self._store
            return asyncio.run(work(cluster, CONTROL_KILLS if self.control else kills, progress))

    async def _store(self, cluster: CassandraCluster, kills: int, progress: Progress) -> Figures:
        keyspace = await fresh_keyspace(cluster)
        toll = Toll()
        while toll.rounds < kills and not (self.control and toll.lost):
            toll += await kill_under_store_load(cluster, keyspace)
            progress(f"{self.title}: {toll}")
        return {
            "kills of all nodes": toll.rounds,
            "plain writes confirmed": toll.confirmed_plain,
            "conditional writes confirmed": toll.confirmed_conditional,
            "lost": toll.lost,
        }

    async def _engine(self, cluster: CassandraCluster, kills: int, progress: Progress) -> Figures:
        killed: AllKilled = await kill_under_engine_load(
            cluster,
            await fresh_keyspace(cluster),
            kills,
            CONFIRMED_EACH,
            until_broken=self.control,
            progress=lambda done, ledger: progress(f"{self.title}: {done} kills, {ledger.confirmed} puts confirmed"),
        )
        account = killed.account
        return {
            "kills of all nodes": killed.kills,
            "puts confirmed": account.confirmed,
            "puts of unknown outcome": account.unknown,
            "puts refused": account.refused,
            "messages delivered": account.delivered,
            "delivered again": account.duplicates,
            "messages acked": account.acked,
            "lost": len(account.lost),
            "other complaints": len(account.complaints),
        } | ({"for example": account.broken[0]} if account.broken else {})


STAGES = (
    Stage("store, commitlog_sync batch", "batch", control=False, engine=False),
    Stage("control: store, commitlog_sync periodic", "periodic", control=True, engine=False),
    Stage("servers under load, commitlog_sync batch", "batch", control=False, engine=True),
    Stage("control: servers under load, commitlog_sync periodic", "periodic", control=True, engine=True),
)
