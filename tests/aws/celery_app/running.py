"""Celery as its users run it: workers and a producer in processes of their own, with SQS as the broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
APPLICATION = "tests.aws.celery_app.tasks"

VISIBILITY_SECONDS = 60
"""Longer than any task may take, on a busy machine too."""

KILLED_VISIBILITY_SECONDS = 10
"""So much later the others have what a killed worker had. A task takes milliseconds, and may be done twice."""

STOP_SECONDS = 30


def environment(url: str, prefix: str, folder: Path, visibility_seconds: int = VISIBILITY_SECONDS) -> dict[str, str]:
    """What tells the application where its broker is. Results are left in the folder."""
    results = folder / "results"
    results.mkdir(exist_ok=True)
    return {
        "CELERY_TEST_BROKER": f"sqs://any:any@{url.removeprefix('http://')}//",
        "CELERY_TEST_RESULTS": str(results),
        "CELERY_TEST_PREFIX": prefix,
        "CELERY_TEST_VISIBILITY_SECONDS": str(visibility_seconds),
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }


class Workers:
    """Processes of `celery worker`, each with one thread of work."""

    def __init__(self, variables: dict[str, str], folder: Path) -> None:
        self._environment = {**os.environ, **variables}
        self._folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        number = len(self.running)
        arguments = [
            "-m", "celery", "--app", APPLICATION, "worker", "--pool", "solo", "--loglevel", "INFO",
            "--hostname", f"worker-{number}@test", "--without-gossip", "--without-mingle", "--without-heartbeat",
        ]
        self.running.append(self.run(f"worker-{number}", *arguments))
        return self.running[-1]

    def run(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Python, told where the broker is; what it says goes to a file."""
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, *arguments]
            return subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)

    def stop(self) -> None:
        for worker in self.running:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in self.running:
            try:
                worker.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


@contextmanager
def workers(variables: dict[str, str], folder: Path) -> Iterator[Workers]:
    started = Workers(variables, folder)
    try:
        yield started
    finally:
        started.stop()


@dataclass(frozen=True)
class Marks:
    asked: int
    done: int
    done_when_killed: int
    seconds: float


def mark_and_kill(url: str, prefix: str, folder: Path, tasks: int, count: int, patience_seconds: float) -> Marks:
    """So many tasks for so many workers, one of which is killed when a tenth is done. Each task leaves a file."""
    done = folder / "done"
    done.mkdir()
    began = time.monotonic()

    def until(condition: Callable[[], bool]) -> None:
        while not condition() and time.monotonic() < began + patience_seconds:
            time.sleep(0.1)

    def finished() -> int:
        return len(os.listdir(done))

    with workers(environment(url, prefix, folder, KILLED_VISIBILITY_SECONDS), folder) as started:
        for _ in range(count):
            started.start()
        producer = started.run("producer", "-m", "tests.aws.celery_app.producer", str(done), str(tasks))
        until(lambda: finished() >= tasks // 10)
        victim = started.running[0]
        victim.kill()
        victim.wait()
        when_killed = finished()
        assert producer.wait(patience_seconds) == 0, (folder / "producer.log").read_text()
        until(lambda: finished() >= tasks)
    return Marks(tasks, finished(), when_killed, time.monotonic() - began)
