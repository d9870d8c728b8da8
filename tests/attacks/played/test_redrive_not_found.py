"""A redrive that has moved messages says that its destination does not exist: "nothing was changed" (errors.py)."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import STATES
from angelhair.errors import RequestError
from tests.queues import HOUR, SECOND, World

SETTINGS = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


@pytest.mark.parametrize("deleted", [False, True])
async def test_r7_redrive_whose_destination_goes_half_way(world: World, deleted: bool) -> None:
    server, other = world.server(), world.server()
    await server.create("dead", lanes=2, **SETTINGS)
    await server.create("orders", **SETTINGS)
    for n in range(8):
        await server.put("dead", str(n).encode())
    taken = []

    async def meanwhile() -> None:
        taken.extend(d.body for d in await other.drain("orders"))
        if deleted:
            await other.engine.delete_queue(world.account, "orders")
        world.wait(10 * SECOND)

    # After the first bucket has arrived, before the second begins.
    server.store.next(
        "change", STATES, meanwhile, after=True,
        when=lambda c: any(r.key in (0, 1, 2, 3) and (r.values or {}).get("settled") == "moved" for r in c.rows),
    )
    said = None
    try:
        said = await server.engine.redrive(world.account, "dead", "orders", 10)
    except Exception as error:
        said = error
    assert taken
    assert not isinstance(said, RequestError), repr(said)
