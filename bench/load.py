"""A load generator that takes little of the machine: keep-alive connections, one request each at a time, no parsing
beyond what is needed to know where a response ends."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)

NextRequest = Callable[[int, bytes], bytes | None]
"""From the status and body of the last response (0 and nothing at first) to the next request; None ends."""


@dataclass(slots=True)
class Load:
    requests: int = 0
    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.requests / self.seconds if self.seconds else 0.0

    def percentile_ms(self, percent: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] * 1000 if ordered else 0.0


class _Client(asyncio.Protocol):
    def __init__(self, following: NextRequest, load: Load, end: float, done: asyncio.Future[None]) -> None:
        self._following = following
        self._load = load
        self._end = end
        self._done = done
        self._buffer = b""
        self._need = -1
        self._sent = 0.0
        self._transport = cast("asyncio.Transport", None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send(self._following(0, b""))

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if self._need < 0:
            head = self._buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            found = _LENGTH.search(self._buffer, 0, head)
            self._need = head + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) < self._need:
            return
        now = time.perf_counter()
        load = self._load
        load.requests += 1
        load.latencies.append(now - self._sent)
        status = int(self._buffer[9:12])
        load.statuses[status] = load.statuses.get(status, 0) + 1
        body = self._buffer[self._buffer.find(b"\r\n\r\n") + 4 : self._need]
        self._buffer, self._need = b"", -1
        self._send(self._following(status, body) if now < self._end else None)

    def connection_lost(self, exception: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def _send(self, request: bytes | None) -> None:
        if request is None:
            self._transport.close()
        else:
            self._sent = time.perf_counter()
            self._transport.write(request)


async def run_load(
    host: str, port: int, connections: int, seconds: float, client: Callable[[int], NextRequest]
) -> Load:
    """So many clients at once, each with its own idea of what to send next."""
    loop = asyncio.get_running_loop()
    load = Load()
    began = time.perf_counter()
    ends = []
    for number in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        following = client(number)
        await loop.create_connection(
            lambda following=following, done=done: _Client(following, load, began + seconds, done), host, port
        )
        ends.append(done)
    await asyncio.gather(*ends)
    load.seconds = time.perf_counter() - began
    return load
