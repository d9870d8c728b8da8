"""A run with a key whose row names the id of a producer that died before it wrote."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES
from angelhair.errors import StoreError
from angelhair.model import NewMessage
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 6 * HOUR}


@pytest.mark.parametrize("purged", [False, True])
async def test_r10_a_run_ends_though_a_key_names_the_id_of_a_dead_producer(world: World, purged: object) -> None:
    producer, server = world.server(), world.server()
    await server.create("orders", retention_ms=HOUR, **SETTINGS)
    producer.store.next("write", BODIES, NEVER_SENT, times=1000)
    (unknown,) = await producer.put_outcomes("orders", [NewMessage(b"m", key="k")])
    assert isinstance(unknown, StoreError)
    if purged:
        await server.engine.purge(world.account, "orders")
    else:
        world.wait(31 * MINUTE)
    batch = [NewMessage(b"m", key="k"), NewMessage(b"plain")]
    run = Run("task", 0, 2, "digest", DAY)
    errors = []
    for _ in range(5):
        try:
            begun = await server.engine.begin_run(world.account, "orders", run)
            if begun is not None:
                await server.engine.finish_run(begun, batch)
            break
        except StoreError as error:
            errors.append(error)
        await world.work("orders", MINUTE, [server])
    assert not errors, errors
    got = [d.body for d in await server.drain("orders")]
    assert sorted(got) == [b"m", b"plain"]
