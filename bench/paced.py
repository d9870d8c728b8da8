"""An open-loop load: puts leave when they are due, whatever became of those before; consumers take what comes.

A closed loop would slow down with the server and call it keeping up. Here a put that finds every connection busy waits,
and its latency counts from when it was due.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import cast

from bench.clients import BODY, request

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)

TICK_SECONDS = 0.002
"""How often is looked what is due: far below the latency of a put."""

WAIT_SECONDS = 5
"""How long a consumer waits in the server for a message."""

DRAIN_SECONDS = 30.0
"""By then, after the last put, everything is taken, or the load stands still."""

Answered = Callable[["_Connection", int, bytes], None]


class _Connection(asyncio.Protocol):
    """One request at a time; says when it is answered."""

    def __init__(self, answered: Answered) -> None:
        self._answered = answered
        self._transport = cast("asyncio.Transport", None)
        self._buffer = b""
        self.due = 0.0
        """Of the put that is under way."""
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exception: Exception | None) -> None:
        self.lost = True

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        found = _LENGTH.search(self._buffer, 0, head)
        need = head + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) >= need:
            status, body = int(self._buffer[9:12]), self._buffer[head + 4 : need]
            self._buffer = b""
            self._answered(self, status, body)


class PacedSends:
    """So many requests a second, all alike."""

    def __init__(self, port: int, data: bytes, per_second: float, connections: int) -> None:
        self._port = port
        self._data = data
        self._per_second = per_second
        self._producers = connections
        self._idle: deque[_Connection] = deque()
        self._due: deque[float] = deque()
        self._connections: list[_Connection] = []
        self.issued = 0
        self.confirmed = 0
        self.put_seconds: list[float] = []
        """From when a put was due to its confirmation."""
        self.refused: Counter[int] = Counter()

    async def run(self, seconds: float) -> None:
        self._idle.extend([await self._connect(self._put_answered) for _ in range(self._producers)])
        await self._consume()
        began = time.perf_counter()
        whole = round(self._per_second * seconds)
        while self.issued < whole:
            due = min(whole, int((time.perf_counter() - began) * self._per_second))
            while self.issued < due:
                self._due.append(began + self.issued / self._per_second)
                self.issued += 1
            self._send_due()
            self._check()
            await asyncio.sleep(TICK_SECONDS)
        end = time.perf_counter() + DRAIN_SECONDS
        while self._is_under_way() and time.perf_counter() < end:
            self._check()
            await asyncio.sleep(TICK_SECONDS)
        for connection in self._connections:
            connection.close()

    async def _consume(self) -> None:
        """Nobody does."""

    def _is_under_way(self) -> bool:
        return self.confirmed < self.issued

    async def _connect(self, answered: Answered) -> _Connection:
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(partial(_Connection, answered), "127.0.0.1", self._port)
        self._connections.append(made)
        return made

    def _check(self) -> None:
        if any(connection.lost for connection in self._connections):
            raise RuntimeError("the server has closed a connection under load")
        if self.refused:
            raise RuntimeError(f"requests were refused: {dict(self.refused)}")

    def _send_due(self) -> None:
        while self._due and self._idle:
            producer = self._idle.popleft()
            producer.due = self._due.popleft()
            producer.send(self._data)

    def _put_answered(self, producer: _Connection, status: int, body: bytes) -> None:
        if status >= 300:
            self.refused[status] += 1
        self.confirmed += 1
        self.put_seconds.append(time.perf_counter() - producer.due)
        self._idle.append(producer)
        self._send_due()


class PacedLoad(PacedSends):
    """So many single puts a second, and consumers that receive and ack them one by one."""

    def __init__(self, port: int, queue: str, per_second: float, producers: int, consumers: int) -> None:
        super().__init__(port, request("PUT", f"/queues/{queue}/message", BODY), per_second, producers)
        self._consumers = consumers
        self._receiving = request("GET", f"/queues/{queue}/messages/1?wait={WAIT_SECONDS}")
        self._acking = f"/queues/{queue}/message/"
        self._receives: set[_Connection] = set()
        self.acked = 0
        self.seen: Counter[str] = Counter()

    async def _consume(self) -> None:
        for _ in range(self._consumers):
            self._receive(await self._connect(self._consumer_answered))

    def _is_under_way(self) -> bool:
        return super()._is_under_way() or self.acked < self.confirmed

    def _receive(self, consumer: _Connection) -> None:
        self._receives.add(consumer)
        consumer.send(self._receiving)

    def _consumer_answered(self, consumer: _Connection, status: int, body: bytes) -> None:
        if status >= 300:
            self.refused[status] += 1
        if consumer in self._receives:
            self._receives.discard(consumer)
            given = json.loads(body)["messages"]
            if given:
                self.seen[given[0]["id"]] += 1
                consumer.send(request("DELETE", self._acking + given[0]["receipt"]))
                return
        else:
            self.acked += 1
        self._receive(consumer)
