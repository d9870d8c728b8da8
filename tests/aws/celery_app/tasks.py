"""A Celery application as its users write one. The environment names the broker; nothing in here knows of Angelhair."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.transport.SQS import Transport

RESULTS = Path(os.environ["CELERY_TEST_RESULTS"])
REMOTE_CONTROL = "CELERY_TEST_REMOTE_CONTROL" in os.environ

if REMOTE_CONTROL:
    # Kombu can broadcast over SNS, and does not say so; Celery does not ask workers what a transport says it cannot.
    Transport.implements = Transport.implements.extend(exchange_type=frozenset({"direct", "fanout"}))

app = Celery("tests", broker=os.environ["CELERY_TEST_BROKER"], backend=RESULTS.as_uri())
app.conf.update(
    broker_transport_options={
        "region": "us-east-1", "is_secure": False, "wait_time_seconds": 1, "polling_interval": 0.1,
        "visibility_timeout": int(os.environ["CELERY_TEST_VISIBILITY_SECONDS"]),
        "queue_name_prefix": os.environ["CELERY_TEST_PREFIX"],
        "supports_fanout": REMOTE_CONTROL,
    },
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=10,
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=REMOTE_CONTROL,
    result_expires=None,
)


@app.task
def add(first: int, second: int) -> int:
    return first + second


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def at_the_third_try(self: Any) -> int:
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    tries: int = self.request.retries + 1
    return tries


@app.task
def when() -> float:
    return time.time()


@app.task(ignore_result=True)
def mark(folder: str, number: int) -> None:
    """Leaves a file behind: what was done, whoever asks."""
    Path(folder, str(number)).touch()
