"""Real servers for the client to talk to: one in a thread whose store can be made to fail, one in a process to kill.

    Served        HttpServer and REST door on a store in memory; `faults` makes the store fail, `requests` has what came
    ServerProcess the same on a SQLite file, always on the same port; run as a program, this file is that process
    CutWire       a wire to a server that loses the answers to chosen requests
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from angelhair.clock import SystemClock
from angelhair.identities import RandomIdentities
from angelhair.server import serving
from angelhair.server.app import App
from angelhair.server.audit import Audit
from angelhair.server.gate import Gate
from angelhair.server.http import HttpServer
from angelhair.server.http.messages import Request, Response
from angelhair.server.keyring import Keyring
from angelhair.server.rest.door import RestDoor
from angelhair.server.service import Service
from angelhair.settings import Settings
from angelhair.stores.memory import MemoryStore
from angelhair.stores.sqlite import open_store
from tests.faults import FaultyStore

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60
"""How long a test waits for what must come."""


class Served:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str]] = []
        """Method, path and query of everything that came."""
        self._seen: list[Request] = []
        self.faults = FaultyStore(MemoryStore(lambda: SystemClock().now().wall_ms))
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_SECONDS), "the server did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Receives that wait for a message."""
        return self._service.polling.waiting

    @property
    def left(self) -> bool:
        """Whether a client has left before its answer came."""
        return any(request.client_left for request in self._seen)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        service = self._service = Service(self.faults, RandomIdentities(), SystemClock())
        self.keyring = Keyring(self.faults, Audit())
        app = App([RestDoor(service, Gate(self.keyring, SystemClock(), Audit()))])

        async def handle(request: Request) -> Response:
            self.requests.append((request.method, request.path, request.query))
            self._seen.append(request)
            return await app.handle(request)

        http = HttpServer(handle, RandomIdentities().fresh)
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        listening.setblocking(False)
        service.start()
        await http.listen(listening)
        self._ready.set()
        await self._stopping.wait()
        service.polling.stop()
        await http.stop(1.0)
        await service.stop()


class CutWire:
    """Between client and server. `lose(n)` lets the next n requests arrive and cuts the wire when they are answered."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._to_lose = 0
        self.lost = 0
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def lose(self, answers: int) -> None:
        with self._lock:
            self._to_lose = answers

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A blocked accept does not notice that its socket was closed; it notices a visitor.
        self._accepting = False
        socket.create_connection(self._listening.getsockname()).close()
        for each in self._sockets:
            _shut(each)
        for thread in self._threads:
            thread.join()
        for each in [self._listening, *self._sockets]:
            each.close()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        self._accepting = True
        while True:
            near, _ = self._listening.accept()
            self._sockets.append(near)
            if not self._accepting:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._sockets.append(far)
            self._start(lambda near=near, far=far: self._carry(near, far, answers=False))  # type: ignore[misc]
            self._start(lambda near=near, far=far: self._carry(far, near, answers=True))  # type: ignore[misc]

    def _carry(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65_536):
                if answers and self._loses():
                    break
                sink.sendall(data)
        except OSError:
            pass
        _shut(source)
        _shut(sink)

    def _loses(self) -> bool:
        with self._lock:
            if not self._to_lose:
                return False
            self._to_lose -= 1
            self.lost += 1
            return True


def _shut(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class ServerProcess:
    def __init__(self, file: Path) -> None:
        self._file = file
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._file), str(self.port)],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.communicate(timeout=PATIENCE_SECONDS)
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill(signal.SIGTERM)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def main(file: str, port: int) -> None:
    settings = Settings(port=port, stop_grace_seconds=1.0)
    serving.run(settings, lambda: open_store(file), serving.listen(settings), lambda: print("ready", flush=True))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
