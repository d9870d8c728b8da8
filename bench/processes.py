"""Servers in processes of their own, as anybody would start them, and single requests to them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.here import ROOT
from bench.metrics import Metrics

STOP_SECONDS = 60
"""More than a server takes to finish what is under way."""

CALL_SECONDS = 60
"""More than any single request may take on a busy machine."""


@dataclass(frozen=True)
class Running:
    """A server that serves."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        asked = urllib.request.Request(f"{self.url}{path}", data=body, method=method, headers=headers)
        with urllib.request.urlopen(asked, timeout=CALL_SECONDS) as answer:
            said: bytes = answer.read()
        return said

    def create_queue(self, name: str, **settings: Any) -> None:
        self.call("PUT", f"/queues/{name}", json.dumps(settings).encode())

    def metrics(self) -> Metrics:
        return Metrics.parsed(self.call("GET", "/metrics").decode())

    def resident_bytes(self) -> int:
        """What is really there of its memory, that of the processes it has started included."""
        return sum(resident_bytes(pid) for pid in family(self.process.pid))


def family(pid: int) -> Iterator[int]:
    """The process and all that it has started, as far as they are still there."""
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return
    for thread in threads:
        try:
            children = (thread / "children").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children.split():
            yield from family(int(child))


def resident_bytes(pid: int) -> int:
    """0 for a process that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found is not None else 0


def command_of(pid: int) -> str:
    """Empty for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Starting:
    """A server that was started and has not said yet where it serves. Whoever made it ends it."""

    def __init__(self, arguments: Sequence[str]) -> None:
        # A file, not a pipe that nobody empties: what a server warns of is shown only if it does not start.
        self._warnings = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in `end`
        self._arguments = arguments
        self.process = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=self._warnings, text=True
        )

    def ready(self) -> Running:
        """Waits for the line that says where it serves."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found is None:
            self._warnings.seek(0)
            raise RuntimeError(f"{' '.join(self._arguments)} does not serve: {line!r} {self._warnings.read()}")
        return Running(self.process, int(found[1]))

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(STOP_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._warnings.close()


@contextmanager
def processes(arguments: Sequence[str], count: int = 1) -> Iterator[list[Running]]:
    """So many servers, which start at the same time."""
    with ExitStack() as stack:
        starting = []
        for _ in range(count):
            starting.append(Starting(arguments))
            stack.callback(starting[-1].end)
        yield [one.ready() for one in starting]


SERVE = ("scripts/run.py", "serve", "--port", "0", "--log-level", "error")


@contextmanager
def empty_handler() -> Iterator[Running]:
    with processes(["-m", "bench.empty_handler"]) as (running,):
        yield running


@contextmanager
def embedded(folder: str) -> Iterator[Running]:
    with processes([*SERVE, "--data", folder]) as (running,):
        yield running


@contextmanager
def on_cassandra(
    contact_points: Sequence[str], keyspace: str, count: int = 1, more: Sequence[str] = ()
) -> Iterator[list[Running]]:
    """So many servers that share one keyspace. `more`: flags."""
    where = ("--contact-points", ",".join(contact_points), "--keyspace", keyspace)
    with processes([*SERVE, *where, *more], count) as running:
        yield running
