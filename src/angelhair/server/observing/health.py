"""Whether a process lives, and whether it should be sent requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from angelhair import limits
from angelhair.engine.schema import TABLES
from angelhair.engine.store import Partition, Span, Store
from angelhair.errors import StoreError
from angelhair.server.http.messages import Request, Response, error_response, json_response

_log = logging.getLogger(__name__)

_PROBES = [Span(Partition(table, "health"), limit=1) for table in TABLES]
"""One row, which is not there, of each table and with all columns that this release knows: answered only by a store
that can be reached and whose schema is at least ours."""


def live(_request: Request) -> Response:
    """Whoever reads this knows that the loop turns. A store that is away is no reason to start a process again."""
    return json_response(200, {"status": "live"})


class Readiness:
    """To be made inside a running loop."""

    def __init__(
        self, store: Store, stopping: Callable[[], bool], patience_seconds: float = limits.READY_SECONDS
    ) -> None:
        self._store = store
        self._stopping = stopping
        self._patience_seconds = patience_seconds
        self._loop = asyncio.get_running_loop()
        self._looking: asyncio.Task[str | None] | None = None
        self._looked_at = 0.0
        self._was_ready = True

    async def respond(self, request: Request) -> Response:
        problem = "it is stopping" if self._stopping() else await self._problem()
        if problem is None:
            return json_response(200, {"status": "ready"})
        return error_response(503, "unavailable", f"not ready: {problem}", request.id, headers=(("Retry-After", "1"),))

    async def _problem(self) -> str | None:
        """What keeps us from serving; asked of the store once for all who ask at about the same time."""
        looking = self._looking
        if looking is None or (looking.done() and self._loop.time() - self._looked_at > limits.READY_AGE_SECONDS):
            looking = self._looking = self._loop.create_task(self._look())
        # Who asked may go away; the others still want to know.
        return await asyncio.shield(looking)

    async def _look(self) -> str | None:
        problem: str | None
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._store.read(_PROBES)
            problem = None
        except TimeoutError:
            problem = f"the store has not answered within {self._patience_seconds:g} s"
        except StoreError as error:
            problem = f"the store does not answer: {error}"
        except Exception as error:  # noqa: BLE001 - a schema that is not ours shows as whatever the driver makes of it
            problem = f"the store does not answer as it should: {type(error).__name__}"
            _log.debug("while looking whether the store is ready", exc_info=True)
        self._looked_at = self._loop.time()
        if (problem is None) is not self._was_ready:
            self._was_ready = problem is None
            _log.warning("no longer ready: %s", problem) if problem else _log.info("ready again")
        return problem

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
