"""Rates of a whole server over HTTP: single puts, single receives with their acks, and batches of ten.

Beside each stands what bounds it, measured in the same minute: the same server with a handler that does nothing, or the
bare store given groups of the size that the server's own metrics say it had.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvloop

from bench.here import ROOT
from bench.load import Load, NextRequest, run_load

CONNECTIONS = 64
BODY = b"x" * 200
SECONDS = 4.0
ROUNDS = 3
"""Each figure is the median of so many runs, which take turns: what else the machine does hits all of them."""

BATCH = 10
FILL = 1_000
"""Messages of one request when a queue is filled."""


@dataclass
class Figure:
    name: str
    rates: list[float]
    p50_ms: list[float]
    p99_ms: list[float]

    @property
    def per_second(self) -> float:
        return statistics.median(self.rates)


class Measured:
    """Figures by name, in the order in which they were first taken."""

    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}

    def add(self, name: str, load: Load, messages_per_request: float = 1.0) -> None:
        figure = self.figures.setdefault(name, Figure(name, [], [], []))
        figure.rates.append(load.rate * messages_per_request)
        figure.p50_ms.append(load.percentile_ms(50))
        figure.p99_ms.append(load.percentile_ms(99))

    def rate(self, name: str) -> float:
        return self.figures[name].per_second


@contextmanager
def process(arguments: Sequence[str]) -> Iterator[int]:
    """A server in a process of its own; its port."""
    running = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found is None:
            raise RuntimeError(f"{' '.join(arguments)} does not serve: {line!r}")
        yield int(found[1])
    finally:
        running.terminate()
        running.wait(60)
        if running.stdout is not None:
            running.stdout.close()


@contextmanager
def empty_handler() -> Iterator[int]:
    with process(["-m", "bench.empty_handler"]) as port:
        yield port


@contextmanager
def server(*arguments: str) -> Iterator[int]:
    with process(["scripts/run.py", "serve", "--port", "0", "--log-level", "error", *arguments]) as port:
        yield port


@contextmanager
def embedded() -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder, server("--data", folder) as port:
        yield port


# --- what clients send ----------------------------------------------------------------------------------------------


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def putting(queue: str) -> Callable[[int], NextRequest]:
    data = request("PUT", f"/queues/{queue}/message", BODY)
    return lambda _: lambda status, body: data


def taking(queue: str, batch: int) -> Callable[[int], NextRequest]:
    """Each client receives and acks in turn; whoever finds nothing more ends."""
    asking = request("GET", f"/queues/{queue}/messages/{batch}")

    def client(_: int) -> NextRequest:
        received = False

        def following(status: int, body: bytes) -> bytes | None:
            nonlocal received
            if not received:
                received = True
                return asking
            received = False
            if status != 200:
                raise RuntimeError(f"the server said {status}: {body!r}")
            receipts = [message["receipt"] for message in json.loads(body)["messages"]]
            if not receipts:
                return None
            if batch == 1:
                return request("DELETE", f"/queues/{queue}/message/{receipts[0]}")
            return request("POST", f"/queues/{queue}/acks", json.dumps({"receipts": receipts}).encode())

        return following

    return client


def call(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, method=method)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        said: bytes = answer.read()
    return said


def fill(port: int, queue: str, messages: int) -> None:
    batch = json.dumps([{"body": BODY.decode()}] * FILL).encode()
    for _ in range(-(-messages // FILL)):
        call(port, "PUT", f"/queues/{queue}/messages", batch)


def load(port: int, client: Callable[[int], NextRequest], connections: int = CONNECTIONS) -> Load:
    measured = uvloop.run(run_load("127.0.0.1", port, connections, SECONDS, client))
    refused = {status: count for status, count in measured.statuses.items() if status >= 300}
    if refused:
        raise RuntimeError(f"requests were refused: {refused}")
    return measured


def group_sizes(port: int) -> dict[str, float]:
    """Messages that shared one commit, on average, by verb, as the server's own metrics have it."""
    text = call(port, "GET", "/metrics").decode()
    sums = dict(re.findall(r'angelhair_group_messages_sum\{verb="(\w+)"\} (\S+)', text))
    counts = dict(re.findall(r'angelhair_group_messages_count\{verb="(\w+)"\} (\S+)', text))
    return {verb: float(sums[verb]) / max(1.0, float(counts[verb])) for verb in sums}


# --- the embedded store ---------------------------------------------------------------------------------------------


def measure_embedded() -> Measured:
    measured = Measured()
    with empty_handler() as empty, embedded() as port:
        for _ in range(ROUNDS):
            measured.add("empty handler", load(empty, putting("q")))
            queue = f"q{uuid.uuid4().hex}"
            call(port, "PUT", f"/queues/{queue}")
            puts = load(port, putting(queue))
            measured.add("single put", puts)
            # Enough for the time that batches take, however fast they are.
            fill(port, queue, int(measured.rate("single put") * SECONDS * 6))
            batches = load(port, taking(queue, BATCH))
            measured.add("receive and ack, batches of 10", batches, BATCH / 2)
    return measured


if __name__ == "__main__":
    found = measure_embedded()
    for figure in found.figures.values():
        print(f"{figure.name}: {figure.per_second:,.0f}/s {[round(rate) for rate in figure.rates]}")
    print(f"single put / empty handler: {found.rate('single put') / found.rate('empty handler'):.2f}")
    print(f"batches / single put: {found.rate('receive and ack, batches of 10') / found.rate('single put'):.2f}")
    asyncio.set_event_loop(None)
