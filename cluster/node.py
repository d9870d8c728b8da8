"""One node: a process that is started, asked, killed, paused, and that ends with whoever started it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from cluster.configuration import NodePlan, command_line, write_configuration

CQL_PORT = 9042

LOG_TAIL_LINES = 30
LOG_LINE_CHARACTERS = 300
"""Enough for a reason; Cassandra also logs its whole configuration on one line."""

LAZY_TIMER_NANOSECONDS = 300_000
"""By how much the timers of a short-lived node may be late. Threads of Cassandra that wait for work look for it every
few ten microseconds, and a test cluster on two cores would spend half of its time on that. Work waits for such a look:
much more than this would cost more than it saves."""

SET_TIMER_SLACK = 29
"""PR_SET_TIMERSLACK of prctl(2). Whatever a thread starts inherits what the thread has; 0 is the system's own value."""

WATCHDOG = Path(__file__).with_name("watchdog.py")


@contextmanager
def _lazy_timers() -> Iterator[None]:
    """For processes that the calling thread starts meanwhile. Where there is no such thing, nothing happens."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        yield
        return
    prctl(SET_TIMER_SLACK, ctypes.c_ulong(LAZY_TIMER_NANOSECONDS))
    try:
        yield
    finally:
        prctl(SET_TIMER_SLACK, ctypes.c_ulong(0))


class ClusterFailed(RuntimeError):
    """A node did not come up, or went away by itself; the message ends with what its log said last."""


class Node:
    def __init__(self, plan: NodePlan, java: str, jars: Path) -> None:
        self.plan = plan
        self.address = plan.address
        self._command = command_line(plan, java, jars)
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._started = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        if self.running:
            return
        if self.plan.steady and self._started:
            raise ClusterFailed("a steady node has forgotten its schema when it ends: it is not started again")
        self._forget()
        self._started = True
        write_configuration(self.plan)
        timers = _lazy_timers() if self.plan.short_lived else nullcontext()
        with timers, open(self.plan.output_file, "ab") as output:
            # Its own session: a Ctrl-C at the terminal reaches whoever runs the cluster, who then stops it in order.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self.plan.pid_file.write_text(str(self._process.pid))
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WATCHDOG), str(self._process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def kill(self) -> None:
        """SIGKILL: no last words, no flush."""
        self._signal(signal.SIGKILL)
        self._forget()

    def terminate(self) -> None:
        """Asks it to stop; `wait_stopped` sees to it."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)

    def wait_stopped(self, timeout_seconds: float) -> None:
        if self._process is not None:
            try:
                self._process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
        self._forget()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def answers(self) -> bool:
        """Whether something listens on its CQL port."""
        try:
            with socket.create_connection((self.address, CQL_PORT), timeout=1):
                return True
        except OSError:
            return False

    def last_words(self) -> str:
        lines: list[str] = []
        for file in (self.plan.output_file, self.plan.log_file):
            if file.exists():
                lines += file.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return "\n".join(line[:LOG_LINE_CHARACTERS] for line in lines)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None
        if self._watchdog is not None:
            # Closing its input ends it; its process is gone by now, so it finds nothing to kill.
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.close()
            self._watchdog.wait()
            self._watchdog = None
