"""A run whose second try died between its key's row and its message says OutcomeUnknown for ever (R10)."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR, "dedup_window_ms": 5 * MINUTE}


@pytest.mark.parametrize("wait_ms", [4 * MINUTE, 6 * MINUTE])
@pytest.mark.parametrize("retention_ms", [None, 4 * DAY])
async def test_r10_run_can_never_be_finished(world: World, wait_ms: int, retention_ms: int | None) -> None:
    first, second, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=retention_ms, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", key="k")]
    for server in (first, second):
        server.store.next("write", BODIES, NEVER_SENT, times=1000)
        begun = await server.engine.begin_run(world.account, "orders", run)
        with pytest.raises(StoreError):
            await server.engine.finish_run(begun, batch)
        if server is first:
            await third.engine.purge(world.account, "orders")
    world.wait(wait_ms)
    said: list = []
    for _ in range(20):
        try:
            again = await third.engine.begin_run(world.account, "orders", run)
            said.append(await third.engine.finish_run(again, batch))
            break
        except AngelhairError as error:
            said.append(repr(error))
            world.wait(HOUR)
    assert said[-1] == set(), said
    assert await all_of(world, world.server()) == [b"m"]


@pytest.mark.parametrize("wait_ms", [4 * MINUTE, 6 * MINUTE])
async def test_r10_run_that_went_on_from_anothers_id_can_never_be_finished(world: World, wait_ms: int) -> None:
    """The ledger never moves: the key's row went on from a dead producer's purged id to the run's own."""
    producer, first, third = world.server(), world.server(), world.server()
    await first.create("orders", retention_ms=None, **SETTINGS)
    producer.store.next("write", BODIES, NEVER_SENT, times=1000)
    (said,) = await producer.put_outcomes("orders", [NewMessage(b"p", key="k")])
    assert isinstance(said, StoreError)
    await third.engine.purge(world.account, "orders")
    run, batch = Run("task", 0, 1, "digest", DAY), [NewMessage(b"m", key="k")]
    begun = await first.engine.begin_run(world.account, "orders", run)
    first.store.next("write", BODIES, NEVER_SENT, times=1000, when=lambda w: w.rows[0].values.get("body") == b"m")
    with pytest.raises(StoreError):
        await first.engine.finish_run(begun, batch)
    world.wait(wait_ms)
    said = []
    for _ in range(20):
        try:
            again = await third.engine.begin_run(world.account, "orders", run)
            said.append(await third.engine.finish_run(again, batch))
            break
        except AngelhairError as error:
            said.append(repr(error))
            world.wait(HOUR)
    assert said[-1] == set(), said
    assert await all_of(world, world.server()) == [b"m"]
