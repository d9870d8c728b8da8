"""A server in a process of its own that a test treats badly: what it keeps of that in memory, and says in its log."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.command import COMMAND, environment

PATIENCE_SECONDS = 30

GROWTH_KILOBYTES = 24 * 1024
"""What the allocator may keep of the largest bodies at work at one time; a leak of 3 KiB in each of 10,000 shows."""

COMPLAINTS = ("Traceback", "does not know", "never retrieved", "never awaited")
"""What a log says of errors that nobody has thought of."""


@dataclass(frozen=True)
class Attacked:
    process: subprocess.Popen[str]
    port: int

    @property
    def memory_kilobytes(self) -> int:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1])


@contextmanager
def attacked(folder: Path) -> Iterator[Attacked]:
    """In the end it must have been there all the time, and have nothing to complain of."""
    log = folder / "log"
    with log.open("w") as told:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", "--data", str(folder)],
            stdout=subprocess.PIPE, stderr=told, text=True, env=environment(),
        )
    assert process.stdout is not None
    with process.stdout:
        try:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None, log.read_text()
            yield Attacked(process, int(found[1]))
            assert process.poll() is None, "the server is gone"
        finally:
            process.terminate()
            ended = process.wait(PATIENCE_SECONDS)
    assert ended == 0
    complaints = [line for line in log.read_text().splitlines() if any(word in line for word in COMPLAINTS)]
    assert complaints == []
