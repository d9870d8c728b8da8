"""Celery with SQS as its broker: real workers in processes of their own."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aws.celery_app.running import APPLICATION, environment, mark_and_kill, workers
from tests.wire.server import RunningServer

PATIENCE_SECONDS = 240
TASKS = 2_000
WORKERS = 4


@pytest.fixture
def variables(server: RunningServer, tmp_path: Path, name: str) -> dict[str, str]:
    return environment(server.url, f"{name}-", tmp_path)


@pytest.fixture
def tasks(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The application, in this process, as its producers have it."""
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    # Anew: it has read another test's environment.
    sys.modules.pop(APPLICATION, None)
    application = importlib.import_module(APPLICATION)
    yield application
    application.app.close()


def test_tasks_retries_times_and_chords(tasks: Any, variables: dict[str, str], tmp_path: Path) -> None:
    from celery import chord

    with workers(variables, tmp_path) as started:
        started.start()
        adding = [tasks.add.delay(number, number) for number in range(20)]
        third = tasks.at_the_third_try.delay()
        later = tasks.when.apply_async(eta=None, countdown=3)
        asked = time.time()
        summed = chord([tasks.add.s(number, 1) for number in range(5)])(tasks.total.s())
        assert [result.get(timeout=PATIENCE_SECONDS) for result in adding] == [2 * number for number in range(20)]
        assert third.get(timeout=PATIENCE_SECONDS) == 3
        assert later.get(timeout=PATIENCE_SECONDS) >= asked + 2.5
        assert summed.get(timeout=PATIENCE_SECONDS) == 15


def test_workers_are_told_by_remote_control(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Celery broadcasts through a topic of SNS that every worker subscribes a queue of its own to. Answers do not come
    back on any SQS: kombu keeps to itself which queue they are for."""
    monkeypatch.setenv("CELERY_TEST_REMOTE_CONTROL", "1")
    tasks: Any = request.getfixturevalue("tasks")
    with workers(request.getfixturevalue("variables"), tmp_path) as started:
        first, second = started.start(), started.start()
        for number in range(2):
            log = tmp_path / f"worker-{number}.log"
            _until(lambda log=log: " ready." in log.read_text())  # type: ignore[misc]
        tasks.app.control.shutdown(destination=["worker-1@test"])
        _until(lambda: second.poll() is not None)
        assert (first.poll(), second.returncode) == (None, 0)
        assert tasks.add.delay(1, 2).get(timeout=PATIENCE_SECONDS) == 3
        tasks.app.control.shutdown()
        _until(lambda: first.poll() is not None)
        assert first.returncode == 0


def test_what_a_killed_worker_had_is_done_by_the_others(server: RunningServer, name: str, tmp_path: Path) -> None:
    """A1, by a client that has never heard of it."""
    marks = mark_and_kill(server.url, f"{name}-", tmp_path, TASKS, WORKERS, PATIENCE_SECONDS)
    assert marks.done == TASKS
    assert TASKS // 10 <= marks.done_when_killed < TASKS, "the worker was to be killed at work"


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
