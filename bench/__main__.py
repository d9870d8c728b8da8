"""`python -m bench`: rates on SQLite and on one Cassandra node, with durable confirmations or not at all.

Take the ratios, not the figures: both sides of a ratio were measured in the same minute on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import apsw

from angelhair.stores.sqlite import open_store
from bench import here
from bench.rates import ROUNDS, Rate, measure
from tests.costs.clients import BODY, CLIENTS

SQLITE_MESSAGES = 8_000
CASSANDRA_MESSAGES = 1_920
"""A round of each verb; so that each store takes well under a minute."""

CASSANDRA_ADDRESS = 61
"""Away from the clusters of the tests and proofs."""


class Unsafe(Exception):
    """What would be measured is not what is promised."""


async def on_sqlite(messages: int) -> list[Rate]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        # `open_store` insists on synchronous=FULL and reads it back; it refuses a SQLite that does not keep it.
        store = await open_store(path, durability="full")
        try:
            with apsw.Connection(str(path)) as connection:
                if connection.pragma("journal_mode") != "wal":
                    raise Unsafe("SQLite: the file is not in write-ahead mode")
            return await measure(store, messages)
        finally:
            await store.close()


async def on_cassandra(messages: int) -> list[Rate]:
    from cluster import CassandraCluster
    from cluster.testing import fresh_store

    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    cluster = CassandraCluster(1, first_address=CASSANDRA_ADDRESS, commitlog_sync="batch")
    await asyncio.to_thread(cluster.start)
    try:
        store = await fresh_store(cluster)
        try:
            # What the nodes themselves say of their commit log, among other dangers.
            unsafe = [warning for warning in store.warnings if "commitlog_sync" in warning or "inspected" in warning]
            if unsafe:
                raise Unsafe(f"Cassandra: {'; '.join(unsafe)}")
            return await measure(store, messages)
        finally:
            await store.close()
    finally:
        await asyncio.to_thread(cluster.stop)


STORES = {
    "SQLite": (on_sqlite, SQLITE_MESSAGES, "write-ahead log, synchronous=FULL, read back"),
    "Cassandra": (on_cassandra, CASSANDRA_MESSAGES, "one node, commitlog_sync: batch, read back"),
}


def table(title: str, settings: str, rates: list[Rate]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        f"{settings}; {rates[0].messages:,} messages a verb and round; medians of {ROUNDS} rounds.",
        "",
        "| | messages/s | bare store, same groups | ratio | conditional writes | reads | blind writes |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {rate.verb} | {rate.per_second:,.0f} | {rate.baseline_per_second:,.0f} | "
        f"{rate.per_second / rate.baseline_per_second:.2f} | {rate.cost.changes:.3f} | {rate.cost.reads:.3f} | "
        f"{rate.cost.writes:.3f} |"
        for rate in rates
    ]
    return [*lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=[name.lower() for name in STORES])
    parser.add_argument("--messages", type=int, help="per verb and round, in place of each store's own number")
    parser.add_argument("--report-folder", type=Path, default=here.ROOT / "docs" / "benchmarks")
    options = parser.parse_args()
    changed = here.changed_files()
    lines = [
        f"# Benchmarks of {here.commit()}",
        "",
        f"Written by `make bench` on {here.now()}. Take the ratios, not the figures.",
        "",
        f"- Commit: {here.commit()}" + (f", with {len(changed)} changed files" if changed else ""),
        f"- Machine: {here.machine()}",
        f"- {CLIENTS} clients, one message of {len(BODY)} bytes a request, through batching; background work runs",
        "",
    ]
    for name, (run, messages, settings) in STORES.items():
        if options.only in (None, name.lower()):
            try:
                found = table(name, settings, asyncio.run(run(options.messages or messages)))
            except Unsafe as refusal:
                print(refusal, file=sys.stderr)
                return 1
            print("\n".join(found), flush=True)
            lines += found
    options.report_folder.mkdir(parents=True, exist_ok=True)
    path = options.report_folder / f"{here.today()}-{here.commit()}.md"
    path.write_text("\n".join(lines).rstrip("\n") + "\n")
    print(f"report: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
