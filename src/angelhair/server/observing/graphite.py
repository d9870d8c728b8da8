"""The same figures for Graphite, through prometheus_client's bridge.

The loop says when it is time and refreshes what it watches; a thread collects and sends. A Graphite that is away costs
that thread its time, one log line when it goes and one when it comes back, and nobody else anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable

from prometheus_client.bridge.graphite import GraphiteBridge
from prometheus_client.registry import Collector

from angelhair import limits

_log = logging.getLogger(__name__)


class Graphite:
    """To be made inside a running loop. `refresh` runs on the loop before each push."""

    def __init__(
        self,
        address: tuple[str, int],
        prefix: str | None,
        figures: Collector,
        refresh: Callable[[], None],
        every_seconds: float = limits.GRAPHITE_SECONDS,
        patience_seconds: float = limits.GRAPHITE_PATIENCE_SECONDS,
    ) -> None:
        self._address = address
        self._prefix = prefix or ""
        self._refresh = refresh
        self._every_seconds = every_seconds
        self._bridge = GraphiteBridge(self._address, figures, patience_seconds)
        self._turns: queue.Queue[bool] = queue.Queue(1)
        """True: push. False: that was all."""
        self._thread = threading.Thread(target=self._run, name="graphite", daemon=True)
        self._task: asyncio.Task[None] | None = None
        self._away = False

    def start(self) -> None:
        self._thread.start()
        self._task = asyncio.get_running_loop().create_task(self._beat(), name="graphite")

    async def stop(self) -> None:
        """The last figures go too, if Graphite takes them; nobody waits for it longer than for one push."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self.push()
        with contextlib.suppress(queue.Full):
            await asyncio.to_thread(self._turns.put, False, timeout=limits.GRAPHITE_PATIENCE_SECONDS)
        await asyncio.to_thread(self._thread.join, limits.GRAPHITE_PATIENCE_SECONDS)

    def push(self) -> None:
        """Has the thread push now; while it is still busy with the last time, this one is left out."""
        self._refresh()
        with contextlib.suppress(queue.Full):
            self._turns.put_nowait(True)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._every_seconds)
            self.push()

    def _run(self) -> None:
        while self._turns.get():
            try:
                self._bridge.push(self._prefix)
            except OSError as error:
                if not self._away:
                    _log.warning("Graphite at %s:%d does not take the metrics: %s", *self._address, error)
                self._away = True
            except Exception:  # noqa: BLE001 - a thread that ends would be missed only when its figures are wanted
                _log.exception("pushing to Graphite met an error that it does not know; it goes on")
            else:
                if self._away:
                    _log.info("Graphite at %s:%d takes the metrics again", *self._address)
                self._away = False
            finally:
                self._turns.task_done()
