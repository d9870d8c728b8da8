"""Workers of a timeline as processes of their own, which are killed and stopped; and the account of what they did.

Each worker appends a line to a file of its own for every message that it has handled, before the message is acked, with
how late that was: what is handled twice is there twice. Run as a program, this file is one worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from angelhair import Client
from angelhair.client import Draft, Message, Timeline

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 180.0
"""For what must come at last, however busy the machine is."""

POLL_SECONDS = 0.1


def until(happened: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> float:
    """How long it took."""
    began = time.monotonic()
    while not happened():
        assert time.monotonic() - began < seconds, f"it did not come about in {seconds:g} seconds: {what}"
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


@dataclass
class Member:
    name: str
    process: subprocess.Popen[bytes]
    book: Path
    complaints: Path

    def handled(self) -> list[int]:
        return [int(line.partition(b" ")[0]) for line in self._lines()]

    def lags_ms(self) -> dict[int, int]:
        """By message, by how much its first handling was late."""
        lags: dict[int, int] = {}
        for line in self._lines():
            number, _, late_ms = line.partition(b" ")
            lags.setdefault(int(number), int(late_ms))
        return lags

    def _lines(self) -> list[bytes]:
        # A line that a kill cut off was not said.
        whole, _, _ = self.book.read_bytes().rpartition(b"\n")
        return whole.splitlines()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@dataclass
class Crew:
    """Workers that share one timeline."""

    folder: Path
    queue: str
    members: dict[str, Member] = field(default_factory=dict)

    def start(self, url: str, *names: str) -> None:
        """All in the same instant."""
        for name in names:
            book, complaints = self.folder / f"{name}.book", self.folder / f"{name}.err"
            book.touch()
            with complaints.open("wb") as errors:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.killed.timeline_crew", url, self.queue, name, str(book)], cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}, stderr=errors,
                )
            self.members[name] = Member(name, process, book, complaints)

    def handled(self) -> Counter[int]:
        return Counter(number for member in self.members.values() for number in member.handled())

    def lags_ms(self) -> list[int]:
        """Of all messages, each when it was handled first, in order."""
        first: dict[int, int] = {}
        for member in self.members.values():
            for number, late_ms in member.lags_ms().items():
                first[number] = min(late_ms, first.get(number, late_ms))
        return sorted(first.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members.values():
            if member.process.poll() is None:
                member.signal(signal.SIGCONT)
                member.signal(signal.SIGTERM)
        for member in self.members.values():
            try:
                member.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                member.process.kill()
                raise


def put_over(timeline: Timeline, first: int, count: int, start: datetime, seconds: float) -> None:
    """Numbered messages, due evenly over so much time from the start on."""
    drafts = [
        Draft(str(first + number), due=start + timedelta(seconds=seconds * number / count)) for number in range(count)
    ]
    failed = [outcome.error for outcome in timeline.put_many(drafts) if outcome.error is not None]
    assert not failed, failed[0]


def holders(timeline: Timeline) -> dict[int, str | None]:
    return {shard.shard: shard.consumer for shard in timeline.shards()}


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def main(url: str, queue: str, name: str, book: str) -> None:
    descriptor = os.open(book, os.O_WRONLY | os.O_APPEND)

    def handle(message: Message) -> None:
        assert message.due is not None
        late_ms = (datetime.now(UTC) - message.due) // timedelta(milliseconds=1)
        os.write(descriptor, b"%s %d\n" % (message.body, late_ms))

    with Client(url) as client:
        client.timeline(queue).run(handle, consumer=name, concurrency=4)


if __name__ == "__main__":
    main(*sys.argv[1:])
