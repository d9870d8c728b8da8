"""A message is dead-lettered before it had its deliveries: every move that is given back counts as one (A1)."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import STATES
from angelhair.errors import AngelhairError
from tests.queues import SECOND, World


@pytest.mark.parametrize("gone", [False, True])
async def test_a1_give_back_is_no_delivery(world: World, gone: bool) -> None:
    """False, where nobody redrives, is the control."""
    server, mover = world.server(), world.server()
    await server.create("dead")
    await server.create("target")
    await server.create("orders", max_deliveries=2, dead_letter_queue="dead", visibility_timeout_ms=10 * SECOND)
    await server.put("orders", b"m")
    assert len(await server.receive("orders")) == 1
    world.wait(11 * SECOND)
    if gone:

        async def delete() -> None:
            await server.engine.delete_queue(world.account, "target")

        rule = mover.store.next(
            "change", STATES, delete, after=True,
            when=lambda c: any((r.values or {}).get("settled") == "moving" for r in c.rows),
        )
        try:
            await mover.engine.redrive(world.account, "orders", "target", 1)
        except AngelhairError:
            pass
        assert rule.happened
    got = 1
    for _ in range(6):
        got += len(await server.receive("orders"))
        await world.work("orders", 11 * SECOND, [server])
    dead = await server.receive("dead", 10)
    assert (got, [item.body for item in dead]) == (2, [b"m"])
