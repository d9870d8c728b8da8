"""The writer in a thread of this process: for programs that hold a store beside other work, and for tests.

A server has its writer in a process of its own (`process.py`). There are no threads for reading; `store.py` says why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread

from angelhair.clock import Clock
from angelhair.engine.store import Table
from angelhair.stores.sqlite.connection import Place
from angelhair.stores.sqlite.hosting import Future, Job, Writer, settle
from angelhair.stores.sqlite.writing import GROUP_ROWS, Result, Writing

_log = logging.getLogger(__name__)


class WriterThread(Writer):
    def __init__(self, place: Place, tables: Sequence[Table], version: int, clock: Clock) -> None:
        super().__init__()
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=f"sqlite writer {place.path}", daemon=True)
        self._opened: Future = self._loop.create_future()
        self._ended: Future = self._loop.create_future()
        # Only the thread uses it.
        self._writing = Writing(place, tables, version, clock)

    # ---- on the event loop

    async def start(self) -> None:
        self._thread.start()
        await self._opened

    async def stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _carry(self, jobs: list[Job]) -> None:
        self._queue.put(jobs)

    # ---- on the thread

    def _run(self) -> None:
        try:
            self._writing.open()
        except Exception as error:  # noqa: BLE001  whoever opens the store is told, whatever it is
            self._deliver([(self._opened, error)])
            self._deliver([(self._ended, [])])
            return
        self._deliver([(self._opened, [])])
        open_for_more = True
        while open_for_more:
            jobs, open_for_more = self._take()
            if jobs:
                results = self._writing.answer([call for call, _ in jobs])
                self._deliver([(future, result) for (_, future), result in zip(jobs, results, strict=True)])
            # Only now: nobody waits for a checkpoint but those who come during it.
            self._writing.checkpoint()
        self._writing.close()
        self._deliver([(self._ended, [])])

    def _take(self) -> tuple[list[Job], bool]:
        jobs: list[Job] = []
        rows = 0
        try:
            more = self._queue.get()
            while more is not None:
                jobs += more
                rows += sum(call.rows for call, _ in more)
                if rows >= GROUP_ROWS:
                    return jobs, True
                more = self._queue.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _deliver(self, results: list[tuple[Future, Result]]) -> None:
        try:
            self._loop.call_soon_threadsafe(settle, results)
        except RuntimeError:  # the loop was closed first: nobody is left to be told
            _log.debug("SQLite: %d outcomes came after the event loop had ended", len(results))
