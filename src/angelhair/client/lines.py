"""The connections that a client keeps, each in an httpx client of its own.

httpx can keep many in one, but for every request it looks at every pair of them: measured with 64 connections, that is
8 ms of computing for a put that takes 2 ms with one. So each of ours keeps one, and here is who is free.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from angelhair import limits
from angelhair.clock import SystemClock

Line = TypeVar("Line")


class Lines(Generic[Line]):
    """Any number of threads may share one. How many lines are taken at once is the driver's affair."""

    def __init__(self, make: Callable[[], Line]) -> None:
        self._make = make
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._all: set[Line] = set()
        self._idle: deque[tuple[Line, int]] = deque()
        self._closed = False

    def take(self) -> Line:
        """The one that was used last, which is the least likely to have been cut by the server meanwhile."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            if self._idle:
                return self._idle.pop()[0]
            line = self._make()
            self._all.add(line)
            return line

    def give_back(self, line: Line) -> Line | None:
        """Returns one that has been idle for too long and is to be closed, if there is one."""
        now_ms = self._clock.now().monotonic_ms
        with self._lock:
            self._idle.append((line, now_ms))
            oldest, since_ms = self._idle[0]
            if now_ms - since_ms < limits.CLIENT_IDLE_SECONDS * 1000:
                return None
            self._idle.popleft()
            self._all.discard(oldest)
            return oldest

    def close(self) -> list[Line]:
        """Hands out all of them, to be closed."""
        with self._lock:
            self._closed = True
            lines, self._all = list(self._all), set()
            return lines
