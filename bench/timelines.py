"""The part `timelines`: six workers for six shards on a real Cassandra node, one killed -9 and one stopped for longer
than its lock; every message must be processed, and what is processed again stays within a window for each of them."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

from angelhair import Client, limits
from bench.cassandra_node import cassandra_node
from bench.processes import on_cassandra
from tests.killed.timeline_bar import SHARDS, Bar, Report, play_incidents

SERVERS = 2

MESSAGES_A_SECOND = 100_000 / 60
"""The bar is 100,000 due over a minute; fewer are due over as much less."""

SECONDS_LEAST = 20.0
"""Over which messages are due, at least: a kill and a stop in the midst of them need time."""

LOCK_SECONDS = 10.0

PUTS_A_SECOND = 1_000
"""So many at least are put a second on a busy machine of two cores: when the first is due, most are there."""

LEAD_SECONDS_LEAST = 5.0

WORKED_OFF_A_SECOND = 100
"""Below this nobody waits on: a tenth of what two busy cores do."""

PATIENCE_SECONDS_LEAST = 300.0


def bar_of(messages: int) -> Bar:
    seconds = max(SECONDS_LEAST, messages / MESSAGES_A_SECOND)
    lead_seconds = max(LEAD_SECONDS_LEAST, messages / PUTS_A_SECOND)
    patience_seconds = max(PATIENCE_SECONDS_LEAST, messages / WORKED_OFF_A_SECOND)
    return Bar(messages, seconds, LOCK_SECONDS, lead_seconds, patience_seconds)


def play(messages: int) -> Report:
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    with cassandra_node() as node, tempfile.TemporaryDirectory() as folder:
        with on_cassandra(node.contact_points, node.keyspace, SERVERS) as servers, Client(servers[0].url) as client:
            return play_incidents(client, [server.url for server in servers], Path(folder), bar_of(messages))


def figures(report: Report) -> dict[str, Any]:
    bar = bar_of(report.messages)
    return {
        "messages processed": report.messages,
        "due over seconds": round(bar.seconds, 1),
        "shards, and workers as processes": SHARDS,
        "servers": SERVERS,
        "incidents": "a worker killed -9; a worker stopped for longer than its lock",
        "processed again": report.again,
        "window per incident, the most": limits.TIMELINE_WINDOW,
        "processed again after the kill": report.killed_again,
        "processed again after the stop": report.stopped_again,
        "puts a second": round(report.messages / report.put_seconds),
        "lag of a message in seconds, p50": report.lag_seconds(0.5),
        "lag of a message in seconds, p99": report.lag_seconds(0.99),
        "lag of a message in seconds, worst": report.lag_seconds(1),
        "last processed so many seconds after the last was due": round(report.late_seconds, 1),
    }
