"""A9 and A11 where a queue has several lanes: no lane waits for another."""

from __future__ import annotations

from collections import Counter

import pytest

from angelhair.engine.schema import LEASES, POINTERS, STATES
from angelhair.engine.store import Table
from angelhair.errors import StoreError
from tests.faults import UNAVAILABLE
from tests.queues import SECOND, World


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("table", [STATES, POINTERS, LEASES], ids=lambda table: table.name)
async def test_a11_a_lane_that_cannot_be_read_stops_no_other(world: World, table: Table, servers: int) -> None:
    """The replicas of one partition of lane 0 are down: lane 1 is repaired all the same, and the error is said."""
    working = [world.server() for _ in range(servers)]
    first = working[0]
    await first.create("orders", lanes=2, bucket_size=2, repair_timeout_ms=5 * SECOND)
    for _ in range(4):
        await first.put("orders", b"a", b"b")
    await first.drain("orders")
    for server in working:
        server.store.next(
            "read", table, UNAVAILABLE, times=10**9, when=lambda span: ".0" in span.partition.key[32:34]
        )
    failed = 0
    for _ in range(120):
        for server in working:
            try:
                await server.engine.step(world.account, "orders")
            except StoreError:
                failed += 1
        world.wait(SECOND)
    assert failed
    assert (await world.marks("orders", 1)).repair == 2


async def test_a9_the_lane_of_a_server_without_consumers_is_served(world: World) -> None:
    """Two servers, a lane each. Producers use both, consumers only the first, and its own lane never runs dry."""
    first, second = world.server(), world.server()
    await first.create("orders", lanes=2, bucket_size=100, repair_timeout_ms=5 * SECOND)
    await world.work("orders", 30 * SECOND, [first, second])
    await second.put("orders", b"second's")
    got: Counter[bytes] = Counter()
    for _ in range(20):
        await first.put("orders", b"first's", b"first's")
        got.update(delivery.body for delivery in await first.take("orders", 1))
        await world.work("orders", SECOND, [first, second])
    assert got[b"second's"] == 1
