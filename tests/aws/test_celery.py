"""Celery with SQS as its broker: real workers in processes of their own."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.server import RunningServer

ROOT = Path(__file__).resolve().parents[2]
APPLICATION = "tests.aws.celery_app.tasks"
PATIENCE_SECONDS = 120
MARKS = 200


class Workers:
    """Processes of `celery worker`, each with one thread of work."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        number = len(self.running)
        with (self._folder / f"worker-{number}.log").open("wb") as log:
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "celery", "--app", APPLICATION, "worker", "--pool", "solo",
                     "--loglevel", "INFO", "--hostname", f"worker-{number}@test", "--without-gossip",
                     "--without-mingle", "--without-heartbeat"],
                    cwd=ROOT, env=self._environment, stdout=log, stderr=log,
                )
            )
        return self.running[-1]

    def stop(self) -> None:
        for worker in self.running:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in self.running:
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


@pytest.fixture
def tasks(server: RunningServer, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The application, in this process, as its producers have it."""
    results = tmp_path / "results"
    results.mkdir()
    host = server.url.removeprefix("http://")
    for key, value in (
        ("CELERY_TEST_BROKER", f"sqs://any:any@{host}//"), ("CELERY_TEST_RESULTS", str(results)),
        ("CELERY_TEST_PREFIX", f"{name}-"), ("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}"),
    ):
        monkeypatch.setenv(key, value)
    # Anew: it has read another test's environment.
    sys.modules.pop(APPLICATION, None)
    application = importlib.import_module(APPLICATION)
    yield application
    application.app.close()


@pytest.fixture
def workers(tasks: Any, tmp_path: Path) -> Iterator[Workers]:
    started = Workers(dict(os.environ), tmp_path)
    yield started
    started.stop()


def test_tasks_retries_times_and_chords(tasks: Any, workers: Workers) -> None:
    workers.start()
    from celery import chord

    adding = [tasks.add.delay(number, number) for number in range(20)]
    third = tasks.at_the_third_try.delay()
    later = tasks.when.apply_async(eta=None, countdown=3)
    asked = time.time()
    summed = chord([tasks.add.s(number, 1) for number in range(5)])(tasks.total.s())
    assert [result.get(timeout=PATIENCE_SECONDS) for result in adding] == [2 * number for number in range(20)]
    assert third.get(timeout=PATIENCE_SECONDS) == 3
    assert later.get(timeout=PATIENCE_SECONDS) >= asked + 2.5
    assert summed.get(timeout=PATIENCE_SECONDS) == 15


def test_what_a_killed_worker_had_is_done_by_the_others(tasks: Any, workers: Workers, tmp_path: Path) -> None:
    done = tmp_path / "done"
    done.mkdir()
    for number in range(MARKS):
        tasks.mark.delay(str(done), number)
    victim = workers.start()
    workers.start()
    _until(lambda: len(list(done.iterdir())) >= MARKS // 10)
    victim.kill()
    victim.wait()
    _until(lambda: len(list(done.iterdir())) == MARKS)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
