"""Several processes of one server on one socket: started together, replaced when they die, stopped together."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable

from angelhair import limits
from angelhair.server.serving import OpenStore, Place, run
from angelhair.settings import Settings


def run_many(settings: Settings, open_store: OpenStore, listening: socket.socket, ready: Callable[[], None]) -> int:
    """Until SIGTERM or SIGINT; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="angelhair-") as directory:
        return _Processes(settings, open_store, listening, directory).run(ready)


class _Processes:
    def __init__(self, settings: Settings, open_store: OpenStore, listening: socket.socket, directory: str) -> None:
        self._settings = settings
        self._open_store = open_store
        self._listening = listening
        self._directory = directory
        self._children: dict[int, int] = {}
        self._stopping = False

    def run(self, ready: Callable[[], None]) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        reading, writing = os.pipe()
        for place in range(self._settings.workers):
            self._fork(place, lambda: _announce(writing))
        # The children alone hold the other end now: when all of them are gone there is nothing more to read.
        os.close(writing)
        up = 0
        while up < self._settings.workers and os.read(reading, 1):
            up += 1
        os.close(reading)
        if up < self._settings.workers:
            self._stop(signal.SIGTERM, None)
        elif not self._stopping:
            ready()
        self._mind()
        return 0 if up == self._settings.workers else 1

    def _mind(self) -> None:
        """Waits for the children; who dies before it was told to is replaced."""
        while self._children:
            pid, status = os.wait()
            place = self._children.pop(pid, -1)
            if place < 0 or self._stopping:
                continue
            print(f"angelhair serve: process {pid} ended with {status}; another starts", file=sys.stderr, flush=True)
            time.sleep(limits.RESTART_SECONDS)
            if not self._stopping:
                self._fork(place, lambda: None)

    def _fork(self, place: int, announce: Callable[[], None]) -> None:
        pid = os.fork()
        if pid:
            self._children[pid] = place
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        try:
            run(self._settings, self._open_store, self._listening, announce, Place(place, self._directory))
        except BaseException as error:  # noqa: BLE001 - the parent hears of it by the exit code
            print(f"angelhair serve: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)

    def _stop(self, number: int, _frame: object) -> None:
        self._stopping = True
        for pid in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _announce(writing: int) -> None:
    os.write(writing, b".")
    os.close(writing)
