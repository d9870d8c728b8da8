"""What several promise tests do on the way."""

from __future__ import annotations

from tests.queues import MINUTE, SECOND, Server


async def finish_around(server: Server) -> None:
    """Everything but the ids that others hold is acked, and the worker goes as far as it can."""
    await server.drain("orders")
    for _ in range(3):
        await server.work("orders", 5 * SECOND)
        await server.drain("orders")
    await server.work("orders", MINUTE)
