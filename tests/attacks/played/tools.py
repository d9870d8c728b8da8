"""What several attacks need."""

from __future__ import annotations

from angelhair.engine.store import Change
from tests.queues import MINUTE, Server, World


def repending(change: Change) -> bool:
    """A key that goes on from one id to another."""
    row = change.rows[0]
    return (row.values or {}).get("status") == "pending" and row.expect.get("status") == "pending"


async def all_of(world: World, server: Server, name: str = "orders", ms: int = MINUTE) -> list[bytes]:
    """Everything that comes while background work goes on for a while."""
    got: list[bytes] = []
    for _ in range(4):
        got += [delivery.body for delivery in await server.drain(name)]
        await world.work(name, ms // 4, [server])
    return got
