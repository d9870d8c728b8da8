"""Nodes that freeze and die: rows 1, 3, 4, 15, and what is promised under load meanwhile (A1, A12). All on one cluster
of their own, and in one file: workers take whole files, and a cluster takes a while to start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from cassandra.cluster import ResponseFuture

from angelhair.engine.schema import SEQUENCES
from angelhair.engine.store import APPLIED, Change, Key, Partition, Refused, RowChange, Span, Store, Values
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable
from cluster import CassandraCluster
from cluster.killing import CONFIRMED_LEAST, kill_all_under_load
from cluster.testing import World, cluster_to_shake, connected_store, fresh_keyspace
from tests.cluster import engine_load
from tests.cluster.engine_load import VISIBILITY_MS, drained, servers_on, under_load
from tests.killed.ledger import Ledger

PATIENCE_SECONDS = 30
"""How long something that must happen may take on a loaded machine."""

TRIES = 4
"""How often a freeze is tried that has to be shorter than a node's own patience."""

HASTY_SECONDS = 2.0
"""A client's time-out that is over long before a node throws a waiting request away (12 s)."""

PAUSED_SECONDS = 20
"""As the bar has it."""

CONFIRMED_EACH = 200
"""Puts that are confirmed in every stage: before, with a node dead, with one frozen, and after."""


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[CassandraCluster]:
    with cluster_to_shake() as cluster:
        yield cluster


@pytest.fixture
def shaken_cluster(own_cluster: CassandraCluster) -> Iterator[CassandraCluster]:
    """Whatever a test leaves behind is put right for the next one."""
    yield own_cluster
    for number in range(1, own_cluster.size + 1):
        own_cluster.resume(number)
    for number in range(1, own_cluster.size + 1):
        own_cluster.node(number).start()
    own_cluster.wait_until_ready()


@pytest.fixture(scope="module")
def world(own_cluster: CassandraCluster) -> Iterator[World]:
    with asyncio.Runner() as runner:
        keyspace = runner.run(fresh_keyspace(own_cluster))
        store = runner.run(connected_store(own_cluster, keyspace))
        yield World(runner, store, own_cluster, keyspace)
        runner.run(store.close())


def counted(partition: Partition, value: int | None, attempt: str) -> Change:
    return Change(partition, [RowChange("row", {"next": value}, {"next": (value or 0) + 1, "attempt": attempt})])


async def settled(store: Store, change: Change) -> bool:
    """Repeats the very same change until its outcome is known: applied by any of the tries, or not."""
    mine = change.rows[0].values
    assert mine is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            (outcome,) = await store.change([change])
            if outcome is APPLIED:
                return True
            if isinstance(outcome, Refused):
                return outcome.rows.get(change.rows[0].key, {}).get("attempt") == mine["attempt"]


def test_row_03_a_time_out_is_settled_by_repeating_the_same_change(
    world: World, shaken_cluster: CassandraCluster, place: str
) -> None:
    counters = [Partition(SEQUENCES, f"{place}/{number}") for number in range(12)]
    unknown = 0

    async def test() -> None:
        nonlocal unknown
        changes = [counted(partition, None, f"first of {partition.key}") for partition in counters]
        assert await world.store.change(changes) == [APPLIED] * len(changes)
        # One voter of three is left: whatever starts now is a coin toss.
        shaken_cluster.pause(2)
        shaken_cluster.pause(3)
        changes = [counted(partition, 1, f"second of {partition.key}") for partition in counters]
        outcomes = await world.store.change(changes)
        shaken_cluster.resume(2)
        shaken_cluster.resume(3)
        unknown = sum(isinstance(outcome, OutcomeUnknown) for outcome in outcomes)
        assert all(isinstance(outcome, StoreError) for outcome in outcomes), "two of three were frozen"
        assert all([await settled(world.store, change) for change in changes])
        slices = await world.store.read([Span(partition) for partition in counters])
        assert [slice_.rows[0].values["next"] for slice_ in slices] == [2] * len(counters), "one was counted twice"

    world.run(test)
    assert unknown > 0, "no outcome was unknown: the test shook nothing"


def test_row_04_a_request_that_starts_late_is_refused_by_its_condition(
    world: World, shaken_cluster: CassandraCluster, place: str
) -> None:
    guarded_row = "guarded"
    row = Partition(SEQUENCES, place)

    def both(seen: int, attempt: str) -> list[Change]:
        """Two writes of one partition, so of one coordinator: with a condition on the version, and naively without."""
        values = {"next": seen + 1, "attempt": attempt}
        return [
            Change(row, [RowChange(guarded_row, {"next": seen or None}, values)]),
            Change(row, [RowChange("naive", {}, values)]),
        ]

    async def found(store: Store) -> dict[Key, Values]:
        (slice_,) = await store.read([Span(row)])
        return dict(slice_.rows)

    async def sprung(attempt: int) -> bool:
        """Whether the late write landed. A node that was frozen for very long throws away what had waited in it."""
        nonlocal row
        row = Partition(SEQUENCES, f"{place}/{attempt}")
        async with world.another(request_timeout_seconds=HASTY_SECONDS) as hasty:
            # The first round prepares the statements and shows which node coordinates them.
            requests: list[ResponseFuture] = []
            hasty._bridge._session.add_request_init_listener(requests.append)
            for change in both(0, "first"):
                assert await settled(hasty, change)
            coordinators = {request.coordinator_host.address for request in requests if request.coordinator_host}
            assert len(coordinators) == 1
            coordinator = shaken_cluster.contact_points.index(coordinators.pop()) + 1

            shaken_cluster.pause(coordinator)
            # Each waits for its client's time-out, one after the other, and then for the coordinator to wake up.
            late = await hasty.change(both(1, "late"))
            assert [type(outcome) for outcome in late] == [OutcomeUnknown, OutcomeUnknown]
            async with world.another(connect_timeout_seconds=1) as other:
                # This one finds the frozen node silent and uses the others.
                for change in both(1, "in time"):
                    assert await settled(other, change)
                assert {values["attempt"] for values in (await found(other)).values()} == {"in time"}

                shaken_cluster.resume(coordinator)
                try:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        while (await found(other))["naive"]["attempt"] != "late":
                            await asyncio.sleep(0.2)
                except TimeoutError:
                    return False
                # The trap has sprung: a write that its sender had given up undid a newer one, where nothing guarded it.
                # One more through that coordinator, which takes a partition's writes in turn: the guarded one is done.
                assert await settled(hasty, Change(row, [RowChange("last", {}, {"next": 1, "attempt": "last"})]))
                assert (await found(other))[guarded_row] == {"next": 2, "attempt": "in time"}
                return True

    async def test() -> None:
        for attempt in range(TRIES):
            if await sprung(attempt):
                return
        raise AssertionError("the frozen node never carried out what had waited in it: the test showed nothing")

    world.run(test)


def test_rows_01_and_15_nothing_confirmed_is_lost_when_all_nodes_die_and_all_come_back(
    world: World, shaken_cluster: CassandraCluster
) -> None:
    async def test() -> None:
        for number in range(1, shaken_cluster.size + 1):
            configuration = (shaken_cluster.directory / f"node{number}" / "conf" / "cassandra.yaml").read_text()
            assert f'seeds: "{",".join(shaken_cluster.contact_points)}"' in configuration
        toll = await kill_all_under_load(shaken_cluster, world.keyspace)
        assert min(toll.confirmed_plain, toll.confirmed_conditional) >= CONFIRMED_LEAST
        assert toll.lost == 0, str(toll)

    world.run(test)


def test_row_03_a_dead_cluster_is_unavailable_and_a_lone_survivor_confirms_nothing(
    world: World, shaken_cluster: CassandraCluster, place: str
) -> None:
    async def test() -> None:
        counter = Partition(SEQUENCES, place)
        assert await settled(world.store, counted(counter, None, "before"))
        shaken_cluster.kill(2)
        # Two of three are enough.
        assert await settled(world.store, counted(counter, 1, "two left"))
        shaken_cluster.kill(3)
        (outcome,) = await world.store.change([counted(counter, 2, "one left")])
        assert isinstance(outcome, StoreError)
        shaken_cluster.kill(1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            # The first tries may die on connections that still look open; then the driver knows that nobody is there.
            while not isinstance((await world.store.change([counted(counter, 2, "none left")]))[0], Unavailable):
                await asyncio.sleep(0.1)
        await asyncio.to_thread(shaken_cluster.start)
        assert await settled(world.store, counted(counter, 2, "after"))

    world.run(test)


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
        killed = await engine_load.kill_all_under_load(
            shaken_cluster, keyspace, kills=1, confirmed_each=2 * CONFIRMED_EACH
        )
        print(killed.account)
        assert killed.account.broken == []
        assert killed.kills == 1

    asyncio.run(test())
