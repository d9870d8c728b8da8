"""What `doctor` finds about a Cassandra: the keyspace, its schema, its electorate, and every node by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from angelhair.cli import opening
from angelhair.cli.checks import Check, good, judged, unknown, wrong
from angelhair.errors import StoreRefused
from angelhair.settings import Settings

REACHABLE = "cassandra reachable"


def look(settings: Settings) -> Iterator[Check]:
    try:
        wanted = opening.cassandra_settings(settings)
    except StoreRefused as error:
        yield unknown(REACHABLE, str(error))
        return

    from angelhair.stores.cassandra.examination import examine

    try:
        findings = asyncio.run(examine(wanted))
    except Exception as error:  # noqa: BLE001 - what is no trouble of Cassandra's is raised again in there
        yield wrong(REACHABLE, str(opening.cassandra_trouble(settings, error)))
        return
    yield good(REACHABLE, opening.describe_store(settings))
    for finding in findings:
        if finding.looked:
            yield judged(finding.name, list(finding.problems), finding.found)
        else:
            yield unknown(finding.name, finding.found)
