"""Several processes of one server on one socket: started together, replaced when they die, stopped together, also when
the parent of them dies.

The parent serves nothing and has no threads: what is forked off a process with threads may inherit a lock that nobody
is left to open. So even what is prepared once for all of them is prepared in a child.
"""

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

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_many(
    settings: Settings,
    prepare: Callable[[], None],
    open_store: OpenStore,
    listening: socket.socket,
    ready: Callable[[], None],
) -> int:
    """Until SIGTERM or SIGINT; returns the exit code. `prepare` is called once, before any of the processes starts."""
    with tempfile.TemporaryDirectory(prefix="angelhair-") as directory:

        def work(place: int, announce: Callable[[], None]) -> None:
            run(settings, open_store, listening, announce, Place(place, directory, processes.parent))

        processes = _Processes(settings.workers, work)
        return processes.run(prepare, ready)


class _Processes:
    def __init__(self, count: int, work: Callable[[int, Callable[[], None]], None]) -> None:
        self._count = count
        self._work = work
        self._children: dict[int, int] = {}
        """The places of those that live, by their process ids."""
        self._stopping = False
        # Nothing is ever written here. The parent alone holds the other end, so this one ends when it does: a parent
        # that is killed can tell nobody, and children that went on would keep the address from its successor.
        self.parent, self._life = os.pipe()

    def run(self, prepare: Callable[[], None], ready: Callable[[], None]) -> int:
        for number in SIGNALS:
            signal.signal(number, self._stop)
        if not self._prepared(prepare) or not self._started():
            asked, self._stopping = self._stopping, True
            self._tell(signal.SIGTERM)
            self._mind()
            return 0 if asked else 1
        if not self._stopping:
            ready()
        self._mind()
        return 0

    def _prepared(self, prepare: Callable[[], None]) -> bool:
        pid = self._fork(0, prepare)
        status = os.waitpid(pid, 0)[1]
        del self._children[pid]
        return status == 0 and not self._stopping

    def _started(self) -> bool:
        """Whether all are there. One that ends before it is ready has said why."""
        reading, writing = os.pipe()

        def announce() -> None:
            os.write(writing, b".")
            os.close(writing)

        for place in range(self._count):
            self._fork(place, lambda place=place: self._work(place, announce))  # type: ignore[misc]
        # The children alone hold the other end now: when all of them are gone there is nothing more to read.
        os.close(writing)
        up = 0
        while up < self._count and os.read(reading, 1):
            up += 1
        os.close(reading)
        return up == self._count

    def _mind(self) -> None:
        """Waits for the children; who dies before it was told to is replaced."""
        while self._children:
            pid, status = os.wait()
            place = self._children.pop(pid, -1)
            if place < 0 or self._stopping:
                continue
            print(f"angelhair serve: process {pid} {_end(status)}; another starts", file=sys.stderr, flush=True)
            time.sleep(limits.RESTART_SECONDS)
            if not self._stopping:
                self._fork(place, lambda place=place: self._work(place, lambda: None))  # type: ignore[misc]

    def _fork(self, place: int, work: Callable[[], None]) -> int:
        # A signal in between would find a child that is not in the list yet, or still has its parent's handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid:
                self._children[pid] = place
                if self._stopping:
                    # The signal came just before the mask: this one was not there to be told.
                    os.kill(pid, signal.SIGTERM)
                return pid
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.close(self._life)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the parent hears of it by the exit code
            print(f"angelhair serve: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)

    def _stop(self, number: int, _frame: object) -> None:
        self._stopping = True
        self._tell(number)

    def _tell(self, number: int) -> None:
        for pid in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _end(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
