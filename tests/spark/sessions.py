"""Spark sessions of other kinds, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angelhair.model import NewMessage
from tests.spark.live import QUICK, on_file

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("another_session.py"))
PATIENCE_SECONDS = 600

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for minutes is gone before an optimizing compiler has earned what it costs, which is a third of the
processor time of these tests; and a crew of collector threads is for more than two cores."""


def environment() -> dict[str, str]:
    """Tasks find the package where this process does: for workers elsewhere the path has to be absolute."""
    paths = [str(ROOT / "src"), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


@dataclass(frozen=True)
class Filled:
    """A queue with 45 messages, all acked: four finished buckets, and one that is not full."""

    data: str
    queue: str


def filled(folder: Path) -> Filled:
    data = folder / "data"
    data.mkdir()
    with on_file(data) as live:
        queue = live.create(**QUICK, archive=True)
        live.put(queue, [NewMessage(b'{"n": %d}' % number) for number in range(45)])
        live.drain(queue, 45)
        live.work_until(queue, "repair", 4)
    return Filled(str(data), queue)


WANTED = {
    "read": list(range(45)),
    "sql": list(range(10, 20)),
    "stream": list(range(40)),
    "filters": list(range(20, 30)),
    "archive": {"messages": 40, "marks": {"0": 4}},
    "lake": [[number, "lake" if number < 40 else "queue", number] for number in range(45)],
}
"""What each part finds of a filled queue."""


def found_by(master: str, folder: Path, *parts: str) -> dict[str, Any]:
    """What such a session found of a filled queue."""
    made = filled(folder)
    ran = subprocess.run(
        [sys.executable, PROGRAM, master, made.data, made.queue, str(folder), *parts], cwd=folder,
        env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Connect server on the loopback address, at a port of its own."""
    with subprocess.Popen(
        [sys.executable, PROGRAM, "serve"], cwd=folder, env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:
        assert server.stdout is not None and server.stdin is not None
        try:
            yield f"sc://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()
            server.wait(PATIENCE_SECONDS)
