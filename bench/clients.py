"""What clients send over their connections: puts, receives and acks, as the bytes of HTTP requests."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import msgspec
import uvloop

from bench.load import Load, NextRequest, run_load
from bench.processes import Running

CONNECTIONS = 64
"""As the bars have it."""

BODY = b"x" * 200
"""As the bars have it."""

FILL = 1_000
"""Messages of one request when a queue is filled: the most that one may bring."""

UNLIMITED_SECONDS = 600.0
"""For loads that end with their last message: only a server that stands still gets there."""

UNAVAILABLE = 503
"""The store said no, or several servers were in each other's way for too long: nothing happened, ask again."""

class _Given(msgspec.Struct):
    id: str
    receipt: str


class _Answer(msgspec.Struct):
    messages: list[_Given]


_answers, _acks = msgspec.json.Decoder(_Answer), msgspec.json.Encoder()
"""Of an answer only what the next request needs: the load generator is to take little of the machine."""

Clients = Callable[[int], NextRequest]
"""From the number of a connection to what it sends."""


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def putting(queue: str) -> Clients:
    """Single puts, until the time is over."""
    data = request("PUT", f"/queues/{queue}/message", BODY)
    return lambda _: lambda status, body: data


def putting_so_many(queue: str, messages: int) -> Clients:
    """Single puts, so many over all connections."""
    data = request("PUT", f"/queues/{queue}/message", BODY)
    left = messages

    def following(status: int, body: bytes) -> bytes | None:
        nonlocal left
        if status == UNAVAILABLE:
            # It did not happen: the same message again.
            return data
        left -= 1
        return data if left >= 0 else None

    return lambda _: following


def taking(queue: str, batch: int) -> Clients:
    """Each client receives and acks in turn; whoever finds nothing more ends."""
    return Takers(queue, batch, None).client


class Takers:
    """Clients that receive and ack in turn. What they were given is kept: each message should come once.

    With `messages` they go on until so many different ones have come, over all of them; without, each ends when it
    finds nothing.
    """

    def __init__(self, queue: str, batch: int, messages: int | None) -> None:
        self._queue = queue
        self._batch = batch
        self.messages = messages
        self._asking = request("GET", f"/queues/{queue}/messages/{batch}" + ("?wait=1" if messages else ""))
        self.seen: Counter[str] = Counter()

    def client(self, _: int) -> NextRequest:
        received = False
        under_way = b""

        def following(status: int, body: bytes) -> bytes | None:
            nonlocal received, under_way
            if status == UNAVAILABLE:
                return self._asking if received else under_way
            if received:
                given = _answers.decode(body).messages
                if given:
                    received = False
                    self.seen.update([message.id for message in given])
                    under_way = self._ack([message.receipt for message in given])
                    return under_way
                if self.messages is None:
                    return None
            if self.messages is not None and len(self.seen) >= self.messages:
                return None
            received = True
            return self._asking

        return following

    def _ack(self, receipts: Sequence[str]) -> bytes:
        if self._batch == 1:
            return request("DELETE", f"/queues/{self._queue}/message/{receipts[0]}")
        return request("POST", f"/queues/{self._queue}/acks", _acks.encode({"receipts": receipts}))


def fill(server: Running, queue: str, messages: int) -> None:
    batch = json.dumps([{"body": BODY.decode()}] * FILL).encode()
    for _ in range(-(-messages // FILL)):
        server.call("PUT", f"/queues/{queue}/messages", batch)


def load(
    servers: Sequence[Running],
    client: Clients,
    connections: int,
    seconds: float = UNLIMITED_SECONDS,
    allowed: Collection[int] = (),
) -> Load:
    """Connections are dealt out evenly to the servers; what all of them did, as one load. Whatever was refused, except
    with an allowed status, makes the figures worthless."""

    async def run() -> list[Load]:
        share = connections // len(servers)
        return await asyncio.gather(
            *(run_load("127.0.0.1", server.port, share, seconds, client) for server in servers)
        )

    loads = uvloop.run(run())
    whole = Load(
        requests=sum(part.requests for part in loads),
        seconds=max(part.seconds for part in loads),
        statuses=dict(sum((Counter(part.statuses) for part in loads), Counter())),
        latencies=[latency for part in loads for latency in part.latencies],
    )
    refused = {
        status: count for status, count in whole.statuses.items() if status >= 300 and status not in allowed
    }
    if refused:
        raise RuntimeError(f"requests were refused: {refused}")
    return whole
