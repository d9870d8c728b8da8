"""Simulated servers with a databag: as others, and each says that it lives and looks who else does."""

from __future__ import annotations

from angelhair.engine.members import Holdings, Presence
from angelhair.errors import StoreError
from angelhair.simulation.history import History
from angelhair.simulation.process import Process
from angelhair.simulation.servers import Server
from angelhair.simulation.world import World

AWAY_MS = 1_000
LEAVE_SHARE = 0.02
"""How often a server says goodbye with a beat, and comes back: the borders move."""


class DatabagServer(Server):
    def __init__(
        self, world: World, process: Process, queues: tuple[str, ...], history: History, restless: bool
    ) -> None:
        super().__init__(world, process, queues, history)
        self._restless = restless
        process.spawn(self._belong())

    async def _belong(self) -> None:
        presence = Presence(self._process.name, self._process.name, self._process.incarnation, "1", 0)
        membership = self.engine.membership
        while True:
            try:
                pause_ms = await membership.step(presence, Holdings())
                if self._restless and self._world.random.random() < LEAVE_SHARE:
                    await membership.leave()
            except StoreError:
                pause_ms = AWAY_MS
            await self._process.sleep(pause_ms)
