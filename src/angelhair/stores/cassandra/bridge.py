"""From the driver's response futures, which complete on a thread of its own, to asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from cassandra.cluster import ResponseFuture, ResultSet, Session

from angelhair.stores.cassandra.errors import RequestFailed

REQUESTS_IN_FLIGHT = 512
"""Requests of one store under way at once. More would only queue on the coordinators, where they can time out."""


class Page(NamedTuple):
    rows: Sequence[tuple[Any, ...]]
    paging_state: bytes | None
    """Where the next page begins; None after the last."""


class Bridge:
    """Starts requests on the loop's thread and brings their answers back to it.

    Answers that arrive close together share one wake-up of the loop: waking it costs a system call, and under load the
    driver's thread delivers many answers between two turns of the loop.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(REQUESTS_IN_FLIGHT)
        self._arrived: deque[tuple[asyncio.Future[Page], Page | None, BaseException | None]] = deque()
        self._wake_up_under_way = False

    async def execute(self, statement: Any, profile: str, paging_state: bytes | None = None) -> Page:
        """One request, one page of its answer. Raises `RequestFailed` with whatever the driver says."""
        async with self._slots:
            answer: asyncio.Future[Page] = self._loop.create_future()
            response = self._session.execute_async(statement, execution_profile=profile, paging_state=paging_state)
            response.add_callbacks(
                self._succeeded, self._failed, callback_args=(response, answer), errback_args=(answer,)
            )
            return await answer

    def _succeeded(self, rows: Any, response: ResponseFuture, answer: asyncio.Future[Page]) -> None:
        self._arrive(answer, Page(rows or (), ResultSet(response, rows).paging_state), None)

    def _failed(self, error: BaseException, answer: asyncio.Future[Page]) -> None:
        self._arrive(answer, None, error)

    def _arrive(self, answer: asyncio.Future[Page], page: Page | None, error: BaseException | None) -> None:
        # The order matters: the answer is in the queue before the flag is looked at, and `_deliver` lowers the flag
        # before it empties the queue, so no answer is left lying.
        self._arrived.append((answer, page, error))
        if not self._wake_up_under_way:
            self._wake_up_under_way = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

    def _deliver(self) -> None:
        self._wake_up_under_way = False
        while self._arrived:
            answer, page, error = self._arrived.popleft()
            if answer.done():
                continue  # whoever asked was cancelled meanwhile
            if error is not None:
                answer.set_exception(RequestFailed(error))
            else:
                assert page is not None
                answer.set_result(page)
