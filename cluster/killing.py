"""Kills every node at once under load, starts them again, and counts which confirmed writes are gone.

With `commitlog_sync: batch` none may be. `periodic`, Cassandra's default, is the control: it must lose some, or the
experiment would not show anything. It does not in every round: only what all replicas wrote after their last mark in
the log, at most 100 ms before, is lost. So the control goes on until it has.
`.venv/bin/python -m cluster.killing` does both.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import uuid
from dataclasses import dataclass, field

from angelhair.engine.schema import BODIES, SEQUENCES
from angelhair.engine.store import APPLIED, Change, Partition, Row, RowChange, Span, Store, Write
from cluster.configuration import CommitLogSync
from cluster.nodes import CassandraCluster
from cluster.testing import connected_store, fresh_keyspace

WRITERS = 32
"""Of each kind. Enough that writes are confirmed in the very milliseconds before the kill."""

CONFIRMED_LEAST = 500
"""Writes of each kind that are confirmed before the kill: a slow machine takes longer and proves as much."""

LOAD_TIMEOUT_SECONDS = 120
"""By then even the slowest machine has confirmed that many; if not, the cluster is broken."""

FIRST_ADDRESS = 41
"""Away from the cluster of the tests."""

LAST_MOMENT_SECONDS = 0.5
"""At most so much later comes the kill, at a moment that no timer of the server's knows."""


@dataclass
class Toll:
    """What was confirmed before the nodes died, and what of it was not there afterwards."""

    rounds: int = 0
    confirmed_plain: int = 0
    confirmed_conditional: int = 0
    lost_plain: int = 0
    lost_conditional: int = 0

    @property
    def lost(self) -> int:
        return self.lost_plain + self.lost_conditional

    def __add__(self, other: Toll) -> Toll:
        return Toll(
            self.rounds + other.rounds,
            self.confirmed_plain + other.confirmed_plain,
            self.confirmed_conditional + other.confirmed_conditional,
            self.lost_plain + other.lost_plain,
            self.lost_conditional + other.lost_conditional,
        )

    def __str__(self) -> str:
        return (
            f"{self.rounds} kills of all nodes: {self.lost_plain} of {self.confirmed_plain} plain and "
            f"{self.lost_conditional} of {self.confirmed_conditional} conditional writes lost"
        )


@dataclass
class _Confirmed:
    rows: dict[str, list[int]] = field(default_factory=dict)
    """Keys of confirmed rows, by partition."""
    counts: dict[str, int] = field(default_factory=dict)
    """The last confirmed value of each counter, by partition."""
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    def row(self, partition: str, key: int) -> None:
        self.rows.setdefault(partition, []).append(key)
        self._note()

    def count(self, partition: str, value: int) -> None:
        self.counts[partition] = value
        self._note()

    def _note(self) -> None:
        if min(self.row_count, self.count_sum) >= CONFIRMED_LEAST:
            self.enough.set()

    @property
    def row_count(self) -> int:
        return sum(len(keys) for keys in self.rows.values())

    @property
    def count_sum(self) -> int:
        return sum(self.counts.values())


async def kill_all_under_load(
    cluster: CassandraCluster, keyspace: str, rounds: int = 1, until_lost: bool = False
) -> Toll:
    """Kills and restarts the whole cluster as often as told. The cluster runs before and after."""
    toll = Toll()
    for _ in range(rounds):
        confirmed = _Confirmed()
        store = await connected_store(cluster, keyspace)
        stopping = asyncio.Event()
        place = uuid.uuid4().hex
        writers = [
            asyncio.create_task(write(store, f"{place}/{number}", confirmed, stopping))
            for number in range(WRITERS)
            for write in (_write_rows, _count_up)
        ]
        async with asyncio.timeout(LOAD_TIMEOUT_SECONDS):
            await confirmed.enough.wait()
        await asyncio.sleep(random.uniform(0, LAST_MOMENT_SECONDS))
        await asyncio.to_thread(cluster.kill_all)
        stopping.set()
        await asyncio.gather(*writers)
        await store.close()
        await asyncio.to_thread(cluster.start)
        toll += await _count_losses(cluster, keyspace, confirmed)
        if until_lost and toll.lost:
            break
    return toll


async def _write_rows(store: Store, partition: str, confirmed: _Confirmed, stopping: asyncio.Event) -> None:
    key = 0
    while not stopping.is_set():
        (error,) = await store.write([Write(Partition(BODIES, partition), [Row(key, {"body": b"a body"})])])
        if error is None:
            confirmed.row(partition, key)
        key += 1


async def _count_up(store: Store, partition: str, confirmed: _Confirmed, stopping: asyncio.Event) -> None:
    place = Partition(SEQUENCES, partition)
    value: int | None = None
    while not stopping.is_set():
        following = (value or 0) + 1
        (outcome,) = await store.change([Change(place, [RowChange("row", {"next": value}, {"next": following})])])
        if outcome is APPLIED:
            value = following
            confirmed.count(place.key, value)
        else:
            # Unknown: going on with this counter would blur what was confirmed. A new one is as good.
            place, value = Partition(SEQUENCES, f"{partition}/{uuid.uuid4()}"), None


async def _count_losses(cluster: CassandraCluster, keyspace: str, confirmed: _Confirmed) -> Toll:
    store = await connected_store(cluster, keyspace)
    toll = Toll(rounds=1, confirmed_plain=confirmed.row_count, confirmed_conditional=confirmed.count_sum)
    slices = await store.read([Span(Partition(BODIES, partition), columns=()) for partition in confirmed.rows])
    for keys, found in zip(confirmed.rows.values(), slices, strict=True):
        toll.lost_plain += len(set(keys) - {row.key for row in found.rows})
    slices = await store.read([Span(Partition(SEQUENCES, partition)) for partition in confirmed.counts])
    for count, found in zip(confirmed.counts.values(), slices, strict=True):
        value = found.rows[0].values.get("next", 0) if found.rows else 0
        assert isinstance(value, int)
        toll.lost_conditional += max(0, count - value)
    await store.close()
    return toll


def prove(rounds: int, commitlog_sync: CommitLogSync, until_lost: bool = False) -> Toll:
    """A cluster of its own, killed as often as told."""
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)

    async def experiment(cluster: CassandraCluster) -> Toll:
        return await kill_all_under_load(cluster, await fresh_keyspace(cluster), rounds, until_lost)

    with CassandraCluster(3, first_address=FIRST_ADDRESS, commitlog_sync=commitlog_sync) as cluster:
        return asyncio.run(experiment(cluster))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cluster.killing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--control-rounds", type=int, default=20, help="at most; it ends with the first loss")
    options = parser.parse_args()
    safe = prove(options.rounds, "batch")
    print(f"batch, {safe}", flush=True)
    control = prove(options.control_rounds, "periodic", until_lost=True)
    print(f"periodic (the control, which must lose), {control}", flush=True)
    return 0 if safe.lost == 0 and control.lost > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
