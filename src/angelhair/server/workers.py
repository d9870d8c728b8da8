"""Background work: calls the engine's steps and sleeps in between. Nothing else in the tree sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.errors import QueueNotFound, StoreError

_log = logging.getLogger(__name__)


class Workers:
    """One task per queue, each stepping at its own pace; and one that drops what deleted queues held."""

    def __init__(self, engine: Engine, account: str) -> None:
        self._engine = engine
        self._account = account
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, queues: Iterable[str]) -> None:
        for queue in queues:
            if queue not in self._tasks:
                self._tasks[queue] = asyncio.create_task(self._step(queue), name=f"worker of {queue}")
        if "" not in self._tasks:
            self._tasks[""] = asyncio.create_task(self._bury(), name="gravedigger")

    async def stop(self) -> None:
        """Ends the work and gives the leases back, so that another server need not wait for them to lapse."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
        with contextlib.suppress(StoreError):
            await self._engine.release_leases()

    async def _step(self, queue: str) -> None:
        while True:
            pause_ms = limits.STEP_MS
            try:
                pause_ms = await self._engine.step(self._account, queue)
            except QueueNotFound:
                self._tasks.pop(queue, None)
                return
            except StoreError as error:
                _log.warning("background work on %s waits for the store: %s", queue, error)
            except Exception:  # noqa: BLE001 - see below
                # A queue whose repair has stopped loses its promises one by one: better a noisy log than a dead task.
                _log.exception("background work on %s met an error that it does not know; it goes on", queue)
            await asyncio.sleep(pause_ms / 1000)

    async def _bury(self) -> None:
        while True:
            more = False
            try:
                more = await self._engine.bury_step()
            except StoreError as error:
                _log.warning("dropping deleted queues waits for the store: %s", error)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("dropping deleted queues met an error that it does not know; it goes on")
            await asyncio.sleep((limits.STEP_SOON_MS if more else 10 * limits.STEP_MS) / 1000)
