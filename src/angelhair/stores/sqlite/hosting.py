"""A writer as the event loop sees it: calls are handed over, outcomes come back.

Whatever was handed over while the last transaction was being committed goes into the next one: one fsync confirms
all that is waiting, whoever asked for it. There is no timer: a lone call is committed at once. Calls made in one
turn of the event loop cross over together, and the outcomes of one transaction come back together, as each crossing
wakes a thread or a process.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from angelhair.errors import Unavailable
from angelhair.stores.sqlite.transactions import Call
from angelhair.stores.sqlite.writing import Result

Future = asyncio.Future[Any]
Job = tuple[Call, Future]


class Writer(ABC):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._gathered: list[Job] = []
        self._stopping = False

    @abstractmethod
    async def start(self) -> None:
        """Returns once the file is open. Raises `StoreRefused` or `Unavailable`."""

    @abstractmethod
    async def stop(self) -> None:
        """Finishes what was submitted, then closes the file."""

    @abstractmethod
    def _carry(self, jobs: list[Job]) -> None:
        """Brings calls to where they are done."""

    def submit(self, call: Call) -> Future:
        if self._stopping:
            raise Unavailable("the store is closed")
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        future: Future = self._loop.create_future()
        self._gathered.append((call, future))
        return future

    def _hand_over(self) -> None:
        if self._gathered:
            jobs, self._gathered = self._gathered, []
            self._carry(jobs)


class NoWriter(Writer):
    """For who only reads."""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def _carry(self, jobs: list[Job]) -> None:
        settle((future, Unavailable("the file was opened to be read")) for _, future in jobs)


def settle(results: Iterable[tuple[Future, Result]]) -> None:
    for future, result in results:
        if future.done():  # its task was cancelled
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
