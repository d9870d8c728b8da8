"""Simulated clients of a databag: as of other queues, with an operator who moves the bounds."""

from __future__ import annotations

from typing import Any

from angelhair.simulation.clients import Clients


class DatabagClients(Clients):
    async def _do(self, deed: str) -> None:
        if deed == "bounds":
            changes = self._changes()
            await self.request(lambda server: self._on(server, "change_queue", self.queue, changes))
            return
        if deed == "look":
            await self.request(lambda server: self._on(server, "partitions", self.queue))
        await super()._do(deed)

    def _changes(self) -> dict[str, Any]:
        """Now and then such that are refused."""
        least, most = self.random.choice((1, 7, 16, 50, 150)), self.random.choice((1, 16, 40, 64, 200))
        return self.random.choice((
            {"min_partitions": least, "max_partitions": most},
            {"max_partitions": most},
            {"min_partitions": least},
            {"visibility_timeout_ms": self.random.choice((0, 500, 2_000, 10_000))},
        ))
