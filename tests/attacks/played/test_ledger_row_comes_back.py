"""A confirmed run is lost: the ledger's first row comes back, with the same token, after it had lapsed (A1, R10)."""

from __future__ import annotations

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.schema import BODIES, LEDGER
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import NewMessage
from tests.attacks.played.tools import all_of
from tests.faults import ARRIVE_LATE, NEVER_SENT
from tests.queues import DAY, HOUR, MINUTE, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


@pytest.mark.parametrize("lands", [False, True])
async def test_a1_ledger_row_comes_back(world: World, lands: bool) -> None:
    first, other = world.server(), world.server()
    await other.create("orders", retention_ms=HOUR, **SETTINGS)
    run, batch = Run("task", 0, 1, "digest", HOUR), [NewMessage(b"m", delay_ms=60 * DAY)]
    first.store.next("change", LEDGER, ARRIVE_LATE)
    begun = await first.engine.begin_run(world.account, "orders", run)

    async def others_go_on() -> None:
        world.wait(31 * MINUTE)
        other.store.next("write", BODIES, NEVER_SENT, times=1000)
        with pytest.raises(StoreError):
            await other.engine.finish_run(await other.engine.begin_run(world.account, "orders", run), batch)
        other.store.heal()

    async def lapse() -> None:
        world.wait(31 * DAY)
        if lands:
            await first.store.land()

    first.store.next("write", BODIES, others_go_on)
    first.store.next("change", LEDGER, lapse, when=lambda c: c.rows[0].values["status"] == "committed")
    try:
        said = await first.engine.finish_run(begun, batch)
    except AngelhairError as error:
        said = error
    world.wait(29 * DAY)
    got = await all_of(world, world.server(), ms=4 * MINUTE)
    assert isinstance(said, AngelhairError) or got == [b"m"], (said, got)
