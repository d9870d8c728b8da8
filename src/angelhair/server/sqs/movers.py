"""Who works on move tasks: this server on its own ones, and on those of a server that has not been heard of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from typing import Any

from msgspec.structs import replace

from angelhair import limits
from angelhair.engine.catalog import Queue
from angelhair.errors import AngelhairError, QueueNotFound, StoreError
from angelhair.server.service import Service
from angelhair.server.sqs.tasks import COMPLETED, FAILED, RUNNING, Gone, MoveTask, changing, running, tasks_of

_log = logging.getLogger(__name__)

Place = tuple[str, str]
"""A queue: its account, and its name."""

Watched = tuple[str, str, int]
"""A task's id, its owner and beat."""


class Movers:
    """To be made inside a running loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._server = service.engine.memory.server
        self._tasks: set[asyncio.Task[None]] = set()
        self._working: set[str] = set()
        self._watched: dict[Place, tuple[Watched, int]] = {}
        """By queue: what its running task looked like, and since when, on the monotonic clock."""

    @property
    def server(self) -> str:
        return self._server

    @property
    def working(self) -> int:
        return len(self._working)

    def start(self) -> None:
        self._spawn(self._look_around(), "move tasks of others")

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def work_on(self, queue: Place, task: MoveTask) -> None:
        """From now on, until it is done, cancelled or another server's."""
        if task.id not in self._working:
            self._working.add(task.id)
            self._spawn(self._work(queue, task), f"move task of {queue[1]}")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, queue: Place, task: MoveTask) -> None:
        try:
            while True:
                began = asyncio.get_running_loop().time()
                try:
                    most = task.rate or limits.AWS_MOVE_RATE_MAXIMUM
                    moved = await self._service.redrive(*queue, task.destination, most)
                    task = await self._written(queue, task, moved)
                except (Gone, QueueNotFound):
                    return
                except StoreError as error:
                    _log.warning("a move task of %s waits for the store: %s", queue[1], error)
                if task.status != RUNNING:
                    return
                spent = asyncio.get_running_loop().time() - began
                await asyncio.sleep(max(0, limits.AWS_MOVE_PAUSE_SECONDS - spent))
        except Exception:  # noqa: BLE001 - a task that nobody works on would look as if it were running, for ever
            _log.exception("a move task of %s met an error that it does not know; it is given up", queue[1])
            await self._given_up(queue, task)
        finally:
            self._working.discard(task.id)

    async def _written(self, queue: Place, task: MoveTask, moved: int) -> MoveTask:
        """How far it is: a second in which nothing was left to move ends it."""

        def change(known: MoveTask) -> MoveTask:
            if known.status != RUNNING or known.owner != self._server:
                raise Gone
            return replace(
                known, moved=task.moved + moved, beat=task.beat + 1, status=RUNNING if moved else COMPLETED
            )

        changed = await self._service.rewrite_queue(*queue, changing(task.id, change))
        return _task(changed, task.id)

    async def _given_up(self, queue: Place, task: MoveTask) -> None:
        def change(known: MoveTask) -> MoveTask:
            return replace(known, status=FAILED, reason="The server met an error that it does not know.")

        try:
            await self._service.rewrite_queue(*queue, changing(task.id, change))
        except (Gone, AngelhairError):
            _log.warning("the move task of %s could not be marked as failed", queue[1])

    # --- those of others ----------------------------------------------------------------------------------------------

    async def _look_around(self) -> None:
        while True:
            await asyncio.sleep(limits.AWS_MOVE_LOOK_SECONDS)
            for queue in self._service.workers.queues:
                try:
                    await self._look_at(queue)
                except (Gone, AngelhairError):
                    # Gone, or somebody else was faster; or the store is away, and we look again.
                    continue

    async def _look_at(self, queue: Place) -> None:
        task = running(await self._service.engine.find_queue(*queue))
        if task is None or task.id in self._working:
            self._watched.pop(queue, None)
            return
        seen: Watched = (task.id, task.owner, task.beat)
        now_ms = self._service.clock.now().monotonic_ms
        known, since_ms = self._watched.get(queue, (None, 0))
        if known != seen:
            self._watched[queue] = (seen, now_ms)
        elif now_ms - since_ms >= limits.AWS_MOVE_TAKEOVER_SECONDS * 1000:
            self.work_on(queue, await self._take_over(queue, seen))

    async def _take_over(self, queue: Place, seen: Watched) -> MoveTask:
        def change(known: MoveTask) -> MoveTask:
            ours = known.owner == self._server and known.beat == seen[2] + 1
            if known.status != RUNNING or not (ours or (known.id, known.owner, known.beat) == seen):
                raise Gone
            return known if ours else replace(known, owner=self._server, beat=known.beat + 1)

        changed = await self._service.rewrite_queue(*queue, changing(seen[0], change))
        return _task(changed, seen[0])


def _task(queue: Queue, task_id: str) -> MoveTask:
    return next(task for task in tasks_of(queue) if task.id == task_id)
