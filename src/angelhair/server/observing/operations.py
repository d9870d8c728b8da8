"""The front of this room: everything that a server tells about itself, made, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Protocol

from angelhair.clock import Clock
from angelhair.engine.store import Store
from angelhair.server.http.messages import Request, Response
from angelhair.server.observing import logs
from angelhair.server.observing.depths import Depths
from angelhair.server.observing.door import OperationsDoor
from angelhair.server.observing.graphite import Graphite
from angelhair.server.observing.health import Readiness
from angelhair.server.observing.measured_engine import MeasuredEngine
from angelhair.server.observing.measured_store import MeasuredStore
from angelhair.server.observing.metrics import Figures, Metrics
from angelhair.server.observing.observer import Observer
from angelhair.server.observing.siblings import Siblings
from angelhair.server.observing.traces import Traces
from angelhair.server.workers import Place
from angelhair.settings import Settings

Handler = Callable[[Request], Awaitable[Response]]

CLIENT_GONE = 499
"""What is counted for a request whose client left before the answer. Nobody is ever sent it."""


class Http(Protocol):
    """As much of `HttpServer` as is watched."""

    stopping: bool

    @property
    def connections(self) -> int: ...


class Waiting(Protocol):
    @property
    def waiting(self) -> int: ...


class Background(Protocol):
    steps: int

    @property
    def queues(self) -> list[Place]: ...


class Observing:
    """To be made inside a running loop, in the process that serves. `worker` is its number if it is one of several,
    `directory` then a place that all of them share and nobody else can reach."""

    def __init__(self, settings: Settings, worker: int | None = None, directory: str | None = None) -> None:
        self.observer = Observer()
        self._settings = settings
        self._stopping = False
        self._figures = Figures(self.observer, worker)
        self._siblings = (
            None if worker is None or directory is None
            else Siblings(directory, worker, settings.workers, self._figures, self.observer.refresh)
        )
        self._graphite = (
            None if settings.graphite_address is None
            else Graphite(settings.graphite_address, settings.graphite_prefix, self._figures, self.observer.refresh)
        )
        self._traces = (
            Traces(settings.otlp_endpoint, settings.application_name) if settings.otlp_endpoint else None
        )
        self._readiness: Readiness | None = None
        self._depths: Depths | None = None

    def store(self, store: Store, clock: Clock) -> MeasuredStore:
        """The store that the service is to use in place of this one."""
        return MeasuredStore(store, self.observer, clock)

    def door(self, store: Store) -> OperationsDoor:
        self._readiness = Readiness(store, lambda: self._stopping)
        return OperationsDoor(self._readiness, Metrics(self.observer, self._figures, self._siblings))

    def handler(self, handle: Handler) -> Handler:
        """The handler that the HTTP server is to call in place of this one: counted, logged and traced."""

        async def observed(request: Request) -> Response:
            begun = perf_counter()
            logs.now_handling(request)
            span = None if self._traces is None else self._traces.begin(request)
            status = 500
            try:
                response = await handle(request)
                status = response.status
                return response
            except asyncio.CancelledError:
                status = CLIENT_GONE
                raise
            finally:
                seconds = perf_counter() - begun
                self.observer.request(request.route, request.method, status, seconds)
                if span is not None and self._traces is not None:
                    self._traces.end(span, request, status)
                if self._settings.access_log:
                    logs.access(request, status, seconds)

        return observed

    def refused(self, response: Response) -> None:
        """What the HTTP server is to call for each request that it refused by itself."""
        self.observer.refused(response.status)

    def watch(
        self, http: Http, waiting: Waiting, background: Background, engine: MeasuredEngine,
        label: Callable[[str, str], str], lines: logs.Logs | None = None,
    ) -> None:
        """`label`: what the observer calls a queue of an account."""
        observer = self.observer
        observer.watch_level("angelhair_http_connections", "Open connections.", lambda: http.connections)
        observer.watch_level("angelhair_receives_waiting", "Receives that wait for a message.", lambda: waiting.waiting)
        observer.watch_level(
            "angelhair_background_queues", "Queues whose background work this server looks after, elected or not.",
            lambda: len(background.queues))
        observer.watch_count(
            "angelhair_background_steps", "Steps of background work on queues.", lambda: background.steps)
        observer.watch_level(
            "angelhair_cluster_members", "Processes of servers that live, this one among them, as it last saw them.",
            lambda: len(engine.membership.members.alive))
        if lines is not None:
            observer.watch_count(
                "angelhair_log_lines_left_out", "Log lines for which there was no room.", lambda: lines.left_out)
        self._depths = Depths(engine, label, lambda: background.queues, observer)

    async def start(self) -> None:
        if self._siblings is not None:
            await self._siblings.start()
        if self._graphite is not None:
            self._graphite.start()
        if self._depths is not None:
            self._depths.start()

    def stopping(self) -> None:
        """Before the doors close: from now on the server is not ready."""
        self._stopping = True

    async def stop(self) -> None:
        """After the doors have closed, before the store does."""
        self._stopping = True
        for part in (self._depths, self._readiness, self._siblings, self._graphite, self._traces):
            if part is not None:
                await part.stop()
