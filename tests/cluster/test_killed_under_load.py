"""A1, A12: four producers and four consumers on two servers, while nodes die, freeze and come back."""

from __future__ import annotations

import asyncio

from cluster import CassandraCluster
from cluster.testing import fresh_keyspace
from tests.cluster.engine_load import VISIBILITY_MS, drained, kill_all_under_load, servers_on, under_load
from tests.killed.ledger import Ledger

PAUSED_SECONDS = 20
"""As the bar has it."""

CONFIRMED_EACH = 200
"""Puts that are confirmed in every stage: before, with a node dead, with one frozen, and after."""


def test_one_node_killed_and_another_frozen_under_load(shaken_cluster: CassandraCluster) -> None:
    async def test() -> None:
        keyspace = await fresh_keyspace(shaken_cluster)
        ledger = Ledger(VISIBILITY_MS / 1000)
        async with servers_on(shaken_cluster, keyspace) as servers:
            async with under_load(servers, ledger, "load") as loaded:
                await loaded.confirm(CONFIRMED_EACH)
                shaken_cluster.kill(2)
                await loaded.confirm(CONFIRMED_EACH)
                await asyncio.to_thread(shaken_cluster.start_node, 2)
                await loaded.confirm(CONFIRMED_EACH)
                shaken_cluster.pause(3)
                await asyncio.gather(asyncio.sleep(PAUSED_SECONDS), loaded.confirm(CONFIRMED_EACH))
                shaken_cluster.resume(3)
                await asyncio.to_thread(shaken_cluster.wait_until_ready)
                await loaded.confirm(CONFIRMED_EACH)
            account = await drained(servers, ledger)
        print(account)
        assert account.broken == []
        assert account.confirmed >= 5 * CONFIRMED_EACH
        assert account.acked + account.acks_unknown >= account.confirmed

    asyncio.run(test())


def test_the_whole_cluster_killed_under_load(shaken_cluster: CassandraCluster) -> None:
    async def test() -> None:
        keyspace = await fresh_keyspace(shaken_cluster)
        killed = await kill_all_under_load(shaken_cluster, keyspace, kills=1, confirmed_each=2 * CONFIRMED_EACH)
        print(killed.account)
        assert killed.account.broken == []
        assert killed.kills == 1

    asyncio.run(test())
