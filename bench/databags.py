"""The part `databags`: three servers on a real Cassandra node, one databag of 1,000 partitions, eight consumers; first
while nothing happens, then with one server killed -9 and one added under load."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from angelhair.engine.store import Store
from bench.cassandra_node import Node, cassandra_node
from bench.processes import Running, on_cassandra
from cluster.testing import connected_store
from tests.cluster.databag_bar import BATCH, CONSUMERS, PARTITIONS, Bar, Report, play_incidents, play_quietly

SERVERS = 3

PUTS_A_SECOND = 2_000
"""While a server dies: two busy cores put more."""

PUT_SECONDS_LEAST = 6.0

WORKED_OFF_A_SECOND = 100
"""Below this nobody waits on: a fifth of what two busy cores do."""

PATIENCE_SECONDS_LEAST = 300.0


def bar_of(messages: int) -> Bar:
    return Bar(
        messages, put_seconds=max(PUT_SECONDS_LEAST, messages / PUTS_A_SECOND),
        patience_seconds=max(PATIENCE_SECONDS_LEAST, messages / WORKED_OFF_A_SECOND),
    )


def play(messages: int, progress: Callable[[str], None]) -> tuple[Report, Report]:
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    with cassandra_node() as node, ExitStack() as added:
        with on_cassandra(node.contact_points, node.keyspace, SERVERS) as servers:

            def add() -> Running:
                (running,) = added.enter_context(on_cassandra(node.contact_points, node.keyspace))
                return running

            async def both(store: Store) -> tuple[Report, Report]:
                quiet = await play_quietly(servers, store, bar_of(messages))
                progress(str(quiet))
                return quiet, await play_incidents(servers, add, store, bar_of(messages))

            return asyncio.run(_with_store(node, both))


async def _with_store(node: Node, work: Callable[[Store], Any]) -> tuple[Report, Report]:
    store = await connected_store(node.cluster, node.keyspace)
    try:
        found: tuple[Report, Report] = await work(store)
        return found
    finally:
        await store.close()


def figures(quiet: Report, incidents: Report) -> dict[str, Any]:
    return {
        "messages delivered, each time at least": min(quiet.messages, incidents.messages),
        "partitions": PARTITIONS,
        "servers": SERVERS,
        "consumers": CONSUMERS,
        "batch": BATCH,
        "while nothing happens: messages a second": round(quiet.messages / quiet.seconds),
        "while nothing happens: delivered again": quiet.delivered_again,
        "while nothing happens: duplicates counted": quiet.counted,
        "while nothing happens: locks seen in the store, of which none served": quiet.servings,
        "incidents": "a server killed -9; a server added",
        "with incidents: messages a second": round(incidents.messages / incidents.seconds),
        "with incidents: delivered again": incidents.delivered_again,
        "with incidents: locks seen in the store, of which none served": incidents.servings,
        "with incidents: served after their delete, by the rows in the store": incidents.shown,
        "with incidents: duplicates counted": incidents.counted,
    }
