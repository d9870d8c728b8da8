"""A real server for tests: our own HTTP on a free loopback port, in a thread with its own loop, on one SQLite file.

Between the server and its file stands a `FaultyStore`, so that a test can make the store fail.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from angelhair.clock import SystemClock
from angelhair.engine.store import Store
from angelhair.identities import RandomIdentities
from angelhair.server.app import App
from angelhair.server.audit import Audit
from angelhair.server.gate import Gate
from angelhair.server.http import HttpServer
from angelhair.server.keyring import Keyring
from angelhair.server.observing.door import OperationsDoor
from angelhair.server.observing.health import Readiness
from angelhair.server.observing.metrics import Figures, Metrics
from angelhair.server.observing.observer import Observer
from angelhair.server.rest.door import RestDoor
from angelhair.server.service import Service
from angelhair.server.sns.door import SnsDoor
from angelhair.server.sqs.door import SqsDoor
from angelhair.server.sts.door import StsDoor
from angelhair.settings import ACCOUNT
from angelhair.stores.sqlite import open_store
from tests.faults import FaultyStore

PATIENCE_SECONDS = 60.0
"""How long a test waits for something that must happen; on a machine with nothing else to do it takes milliseconds."""

STOP_SECONDS = 5.0


@dataclass
class RunningServer:
    url: str
    service: Service
    store: FaultyStore
    loop: asyncio.AbstractEventLoop
    sqs: SqsDoor
    sns: SnsDoor

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs something on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_SECONDS)

    def step(self, queue: str) -> None:
        """One step of the queue's background work, now."""
        self.run(self.service.engine.step(ACCOUNT, queue))

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits until something is so on the server."""

        async def watch() -> None:
            while not condition():
                await asyncio.sleep(0.005)

        self.run(asyncio.wait_for(watch(), PATIENCE_SECONDS))


@contextmanager
def running_server(
    folder: Path, vfs: str | None = None, opening: Callable[[], Awaitable[Store]] | None = None
) -> Iterator[RunningServer]:
    """`vfs`: a disk of the tests' own. `opening`: another store, in place of the file."""
    started: list[RunningServer] = []
    failed: list[BaseException] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        opened = await (open_store(folder / "queues.db", vfs=vfs) if opening is None else opening())
        store = FaultyStore(opened)
        service = Service(store, RandomIdentities(), SystemClock())
        observer = Observer()
        readiness = Readiness(store, lambda: False)
        operations = OperationsDoor(readiness, Metrics(observer, Figures(observer, None)))
        keyring = Keyring(store, Audit())
        gate = Gate(keyring, SystemClock(), Audit())
        sqs = SqsDoor(service, gate)
        sns = SnsDoor(service, gate, "http://127.0.0.1", allow_private_endpoints=True)
        sns.start()
        app = App([sqs, sns, StsDoor(gate), RestDoor(service, gate), operations])
        http = HttpServer(app.handle, RandomIdentities().fresh)
        listening = socket.create_server(("127.0.0.1", 0))
        await http.listen(listening)
        port = listening.getsockname()[1]
        started.append(RunningServer(f"http://127.0.0.1:{port}", service, store, asyncio.get_running_loop(), sqs, sns))
        ready.set()
        await stop.wait()
        store.heal()
        service.polling.stop()
        await http.stop(STOP_SECONDS)
        await readiness.stop()
        await sqs.stop()
        await sns.stop()
        await service.stop()

    def live() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=live, name="server under test")
    thread.start()
    assert ready.wait(PATIENCE_SECONDS)
    try:
        if started:
            yield started[0]
    finally:
        if started:
            started[0].loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_SECONDS)
    if failed:
        raise failed[0]
