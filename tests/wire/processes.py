"""`angelhair serve --workers 2` as a test sees it: its processes, connections that lead to one of them, and a story
that they must tell on every store."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.cli.command import COMMAND, environment

PATIENCE_SECONDS = 60.0
"""How long a test waits for what must come."""

VISIBILITY_SECONDS = 2
"""Of what the process that is killed holds: so much later it comes again."""


class Several:
    """A running server of several processes."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    @property
    def workers(self) -> set[int]:
        """The process ids."""
        return children(self.process.pid)

    @contextmanager
    def line_to(self, worker: int) -> Iterator[httpx.Client]:
        """A connection to one of them: as it is made the others are frozen, and cannot take it."""
        others = self.workers - {worker}
        with httpx.Client(
            base_url=self.url, timeout=PATIENCE_SECONDS, limits=httpx.Limits(max_connections=1)
        ) as client:
            try:
                for other in others:
                    os.kill(other, signal.SIGSTOP)
                    until(lambda other=other: is_frozen(other))  # type: ignore[misc]
                assert client.get("/").is_success
            finally:
                for other in others:
                    os.kill(other, signal.SIGCONT)
            yield client


@contextmanager
def several(complaints: Path, *flags: str) -> Iterator[Several]:
    """Afterwards all of its processes must have ended well."""
    command = [*COMMAND, "serve", "--port", "0", "--workers", "2", "--log-format", "text", *flags]
    with complaints.open("w") as output:
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=output, text=True)
    assert process.stdout is not None
    with process.stdout:
        try:
            line = process.stdout.readline()
            assert line.startswith("angelhair serves http://127.0.0.1:"), complaints.read_text()
            yield Several(process, line.split()[2])
        finally:
            workers = children(process.pid)
            process.terminate()
            ended = process.wait(PATIENCE_SECONDS)
    assert ended == 0
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def play(server: Several, complaints: Path) -> None:
    """Messages through both; one dies with messages in its hands, and is replaced; nothing is lost."""
    doomed, other = sorted(server.workers)
    with server.line_to(other) as survivor:
        with server.line_to(doomed) as victim:
            assert victim.put("/queues/shared", json={}).status_code == 201
            go_round(victim, survivor)
            go_round(survivor, victim)
            confirmed = {f"{number}" for number in range(20)}
            for number in confirmed:
                line = victim if int(number) % 2 else survivor
                assert line.put("/queues/shared/message", content=number).status_code == 201
            held = received(victim, 5, VISIBILITY_SECONDS)
            assert len(held) == 5
            os.kill(doomed, signal.SIGKILL)
        came: set[str] = set()
        while came != confirmed:
            for body, receipt in received(survivor, 10, PATIENCE_SECONDS):
                assert survivor.delete(f"/queues/shared/message/{receipt}").status_code == 204
                came.add(body)
        until(lambda: len(server.workers) == 2)
        (replacement,) = server.workers - {other}
        with server.line_to(replacement) as newcomer:
            go_round(newcomer, survivor)
            go_round(survivor, newcomer)
            assert received(newcomer, 10, VISIBILITY_SECONDS, wait_seconds=0) == []
    assert f"angelhair serve: process {doomed} was ended by SIGKILL; another starts\n" in complaints.read_text()


def go_round(one: httpx.Client, other: httpx.Client) -> None:
    """Put through one, received through the other, acked through the first: receipts are good everywhere."""
    assert one.put("/queues/shared/message", content=b"round").status_code == 201
    ((body, receipt),) = received(other, 1, PATIENCE_SECONDS)
    assert body == "round"
    assert one.delete(f"/queues/shared/message/{receipt}").status_code == 204


def received(
    line: httpx.Client, count: int, visibility_seconds: float, wait_seconds: float = 20
) -> list[tuple[str, str]]:
    """Bodies and receipts."""
    query = {"wait": str(wait_seconds), "visibility": str(visibility_seconds)}
    answer = line.get(f"/queues/shared/messages/{count}", params=query)
    assert answer.status_code == 200, answer.text
    return [(message["body"], message["receipt"]) for message in answer.json()["messages"]]


def children(process: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()}


def is_frozen(process: int) -> bool:
    return "\nState:\tT" in Path(f"/proc/{process}/status").read_text()


def until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)
