"""Rates of the engine through batching, without HTTP, beside the bare store: on SQLite and on one Cassandra node."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from angelhair.settings import DATABASE_NAME
from angelhair.stores.sqlite import open_store
from bench.cassandra_node import SETTINGS, Node, cassandra_node
from bench.over_http import check_file
from bench.rates import ROUNDS, Rate, measure
from bench.sheet import Section, table
from cluster.testing import connected_store
from tests.costs.clients import BODY, CLIENTS

SQLITE_MESSAGES = 8_000
CASSANDRA_MESSAGES = 1_920
"""A round of each verb; so that each store takes well under a minute."""

SHORT_MESSAGES = 640

HEADINGS = (
    "", "messages/s", "bare store, same groups", "ratio", "conditional writes a message", "reads", "blind writes",
)


async def _on_sqlite(folder: Path, messages: int) -> list[Rate]:
    store = await open_store(folder / DATABASE_NAME)
    try:
        return await measure(store, messages)
    finally:
        await store.close()


async def _on_cassandra(node: Node, messages: int) -> list[Rate]:
    store = await connected_store(node.cluster, node.keyspace)
    try:
        return await measure(store, messages)
    finally:
        await store.close()


def sqlite_engine_section(short: bool) -> Section:
    with tempfile.TemporaryDirectory() as folder:
        check_file(Path(folder))
        rates = asyncio.run(_on_sqlite(Path(folder), SHORT_MESSAGES if short else SQLITE_MESSAGES))
    return _section("Engine on SQLite", "write-ahead log, synchronous=FULL, read back", rates)


def cassandra_engine_section(short: bool) -> Section:
    with cassandra_node() as node:
        rates = asyncio.run(_on_cassandra(node, SHORT_MESSAGES if short else CASSANDRA_MESSAGES))
    return _section("Engine on Cassandra", SETTINGS, rates)


def _section(title: str, settings: str, rates: list[Rate]) -> Section:
    lines = [
        f"No HTTP: {CLIENTS} clients in one process, one message of {len(BODY)} bytes a request, through batching; "
        f"background work runs. Settings: {settings}. {rates[0].messages:,} messages a verb and round; medians of "
        f"{ROUNDS} rounds.",
        "",
        *table(
            HEADINGS,
            (
                (
                    rate.verb,
                    f"{rate.per_second:,.0f}",
                    f"{rate.baseline_per_second:,.0f}",
                    f"{rate.per_second / rate.baseline_per_second:.2f}",
                    f"{rate.cost.changes:.3f}",
                    f"{rate.cost.reads:.3f}",
                    f"{rate.cost.writes:.3f}",
                )
                for rate in rates
            ),
        ),
    ]
    return Section(title, lines)
