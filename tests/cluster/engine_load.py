"""Servers under load on a real cluster: what the tests and `make prove` share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from angelhair.model import QueueSettings
from cluster import CassandraCluster
from cluster.testing import connected_store
from tests.killed.draining import drain
from tests.killed.ledger import Account, Ledger
from tests.killed.load import Load, Server

SERVERS = 2
PRODUCERS = CONSUMERS = 4

VISIBILITY_MS = 8_000
"""Longer than a conditional write may take while a node is frozen: a consumer that waits for it keeps its message."""

SETTINGS = QueueSettings(
    bucket_size=100, visibility_timeout_ms=VISIBILITY_MS, repair_timeout_ms=2_000, history_ms=1_000, retention_ms=None
)

QUIET_SECONDS = 15.0
"""Nothing may come for so long before the queue counts as drained: longer than any time-out of above and a lease."""

PROGRESS_SECONDS = 120
"""By then even the slowest machine has confirmed what is waited for; if not, the load stands still."""

POLL_SECONDS = 0.05

LAST_MOMENT_SECONDS = 0.5
"""At most so much later comes a kill, at a moment that no timer of the server's knows."""


class UnderLoad:
    """A load that runs, and its book."""

    def __init__(self, ledger: Ledger, load: Load) -> None:
        self.ledger = ledger
        self.load = load

    async def confirm(self, more: int) -> None:
        """Waits until so many more puts are confirmed."""
        wanted = self.ledger.confirmed + more
        async with asyncio.timeout(PROGRESS_SECONDS):
            while self.ledger.confirmed < wanted:
                self.load.check()
                await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def servers_on(cluster: CassandraCluster, keyspace: str) -> AsyncIterator[list[Server]]:
    servers = [Server(await connected_store(cluster, keyspace)) for _ in range(SERVERS)]
    try:
        for server in servers:
            await server.start(SETTINGS)
        yield servers
    finally:
        for server in servers:
            await server.stop()


@asynccontextmanager
async def under_load(servers: list[Server], ledger: Ledger, run_name: str) -> AsyncIterator[UnderLoad]:
    load = Load(servers, lambda entry: ledger.enter([entry]), run_name)
    load.start(PRODUCERS, CONSUMERS)
    try:
        yield UnderLoad(ledger, load)
    finally:
        await load.stop()


async def drained(servers: list[Server], ledger: Ledger) -> Account:
    complaints = await drain(servers, ledger, QUIET_SECONDS, "drain")
    account = ledger.account()
    account.complaints += complaints
    return account


@dataclass
class AllKilled:
    kills: int
    account: Account


async def kill_all_under_load(
    cluster: CassandraCluster,
    keyspace: str,
    kills: int,
    confirmed_each: int,
    until_broken: bool = False,
    progress: Callable[[int, Ledger], None] = lambda _kills, _ledger: None,
) -> AllKilled:
    """Kills every node at once under load, starts them again, goes on with the same queue; at last drains it.

    With `until_broken` the queue is drained and judged after every kill, and the first loss ends it.
    """
    ledger = Ledger(VISIBILITY_MS / 1000)
    result = AllKilled(0, ledger.account())
    while result.kills < kills and not (until_broken and result.account.broken):
        async with servers_on(cluster, keyspace) as servers:
            async with under_load(servers, ledger, f"life{result.kills}") as loaded:
                await loaded.confirm(confirmed_each)
                await asyncio.sleep(random.uniform(0, LAST_MOMENT_SECONDS))
                await asyncio.to_thread(cluster.kill_all)
        result.kills += 1
        await asyncio.to_thread(cluster.start)
        if until_broken or result.kills == kills:
            async with servers_on(cluster, keyspace) as servers:
                result.account = await drained(servers, ledger)
        progress(result.kills, ledger)
    return result
