"""Unavailable is answered for a redrive that has moved messages: the queue was deleted before the next lane."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import QUEUES, STATES
from angelhair.errors import AngelhairError, Unavailable
from angelhair.model import NewMessage
from tests.faults import UNAVAILABLE
from tests.queues import SECOND, World


@pytest.mark.parametrize("fault", [False, True])
async def test_redrive_run_again(world: World, fault: bool) -> None:
    server, mover = world.server(), world.server()
    await server.create("target")
    await server.create("orders", lanes=2, history_ms=0, repair_timeout_ms=SECOND, bucket_size=4)
    while True:
        (put,) = await server.put_outcomes("orders", [NewMessage(b"m")])
        if put.lane == 0:
            break
        await server.drain("orders")

    async def meanwhile() -> None:
        # The queue is deleted; the mover sleeps.
        await server.engine.delete_queue(world.account, "orders")
        if fault:
            mover.store.next("read", QUEUES, UNAVAILABLE, times=1000)

    rule = mover.store.next(
        "change", STATES, meanwhile, after=True,
        when=lambda c: any((r.values or {}).get("settled") == "moved" for r in c.rows),
    )
    try:
        said = await mover.engine.redrive(world.account, "orders", "target", 3)
    except AngelhairError as error:
        said = error
    assert rule.happened
    mover.store.heal()
    got = [item.body for item in await server.drain("target")]
    assert got == [b"m"]
    # "Provably did not happen" is a lie. The control, False, says QueueNotFound.
    assert not isinstance(said, Unavailable), said
