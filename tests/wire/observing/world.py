"""A real HTTP server on a loopback port, with everything that a server tells about itself, and a small door of queues.

The door is the tests' own: what is observed does not depend on which door a request came through.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from angelhair.batching.batching import Batching
from angelhair.clock import Clock, SystemClock
from angelhair.engine.store import Store
from angelhair.model import Ask, MessageId, NewMessage, QueueSettings
from angelhair.server.http import HttpServer, Request, Response
from angelhair.server.http.messages import error_response, json_response
from angelhair.server.observing.logs import Logs
from angelhair.server.observing.measured_engine import MeasuredEngine
from angelhair.server.observing.operations import Observing
from angelhair.server.polling import Polling
from angelhair.server.runtime import AsyncioRuntime
from angelhair.server.workers import Workers
from angelhair.settings import Settings
from angelhair.stores.memory import MemoryStore
from tests.queues import Identities

ACCOUNT = "me"
PATIENCE_SECONDS = 20
"""How long a test waits for what must come."""


@dataclass
class Served:
    """One server as a test sees it."""

    client: httpx.AsyncClient
    observing: Observing
    engine: MeasuredEngine
    http: HttpServer
    workers: Workers
    polling: Polling
    port: int

    async def metrics(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Every sample by name and sorted labels."""
        answer = await self.client.get("/metrics")
        assert answer.status_code == 200
        return samples(answer.text)


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


class Door:
    """Puts, receives and acks single messages; `/broken` meets an error that nobody foresaw."""

    def __init__(self, batching: Batching, polling: Polling, observing: Observing) -> None:
        self._batching = batching
        self._polling = polling
        self._observer = observing.observer

    async def handle(self, request: Request) -> Response:
        match request.method, request.segments:
            case "PUT", ["queues", name, "message"]:
                request.route, request.queue = "/queues/{queue}/message", name
                (outcome,) = await self._batching.put(ACCOUNT, name, [NewMessage(request.body)])
                if not isinstance(outcome, MessageId):
                    return error_response(503, "unavailable", str(outcome), request.id)
                self._observer.put(name, 1)
                self._polling.wake(ACCOUNT, name, 1)
                return json_response(201, {"id": str(outcome), "queue": name})
            case "GET", ["queues", name, "messages", count]:
                request.route, request.queue = "/queues/{queue}/messages/{batch}", name
                wait = float(request.query.removeprefix("wait=") or 0)
                found = await self._polling.receive(ACCOUNT, name, Ask(int(count)), wait)
                self._observer.received(name, found)
                return json_response(200, [{"receipt": one.receipt, "body": one.body.decode()} for one in found])
            case "DELETE", ["queues", name, "message", receipt]:
                request.route, request.queue = "/queues/{queue}/message/{receipt}", name
                (outcome_of_ack,) = await self._batching.ack(ACCOUNT, name, [receipt])
                refused = outcome_of_ack is not None
                self._observer.acked(name, int(not refused), int(refused))
                return Response(409 if refused else 204)
            case _, ["broken", *rest]:
                request.route = "/broken"
                raise RuntimeError(f"choked on {request.body!r}, {request.body.decode()} and {rest}")
        return error_response(404, "not_found", "there is nothing", request.id)


@asynccontextmanager
async def serving(
    settings: Settings | None = None,
    store: Store | None = None,
    clock: Clock | None = None,
    queues: dict[str, QueueSettings] | None = None,
    logs: Logs | None = None,
    worker: int | None = None,
    directory: str | None = None,
) -> AsyncIterator[Served]:
    settings = settings or Settings()
    clock = clock or SystemClock()
    store = store or MemoryStore(lambda: clock.now().wall_ms)
    observing = Observing(settings, worker, directory)
    if logs is not None:
        logs.watch(asyncio.get_running_loop())
    measured = observing.store(store, clock)
    engine = MeasuredEngine(measured, Identities(), clock, observing.observer)
    batching = Batching(engine, AsyncioRuntime())
    polling = Polling(batching.receive, engine.due_in_ms)
    workers = Workers(engine, ACCOUNT)
    operations = observing.door(measured)
    door = Door(batching, polling, observing)

    async def handle(request: Request) -> Response:
        return await operations.handle(request) or await door.handle(request)

    numbers = itertools.count(1)
    http = HttpServer(observing.handler(handle), lambda: f"request-{next(numbers)}", observing.refused)
    observing.watch(http, polling, workers, engine, lambda _, name: name, logs)
    for name, wanted in (queues or {}).items():
        await engine.create_queue(ACCOUNT, name, wanted)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    await http.listen(listening)
    await observing.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as client:
            yield Served(client, observing, engine, http, workers, polling, port)
    finally:
        observing.stopping()
        polling.stop()
        await http.stop(1)
        await observing.stop()
        await workers.stop()
        await store.close()


@contextmanager
def logging_to(
    form: str = "json", level: str = "debug", application: str = "kitchen"
) -> Iterator[tuple[Logs, StringIO]]:
    """Logs as a server has them, into a text that can be looked at once the block has ended."""
    stream = StringIO()
    logs = Logs(level, form, application, stream)
    try:
        yield logs, stream
    finally:
        logs.stop()


def lines_of(stream: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def quiet() -> None:
    """The client's own log lines are not what these tests are about."""
    for name in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
