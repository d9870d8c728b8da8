"""asyncio as the driver of batching. The simulator has one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any


class AsyncioRuntime:
    """Implements `batching.runtime.Runtime`. To be made inside a running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def promise(self) -> asyncio.Future[Any]:
        return self._loop.create_future()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # A context of its own: it works for many requests, and must not speak in the name of the one that started it.
        task = self._loop.create_task(work, context=Context())
        # The loop itself keeps only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
