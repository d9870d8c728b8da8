"""docs/operations.md: its program moves what one server holds to another, and run again moves nothing twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from angelhair import Client, Draft

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


@contextmanager
def server(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "angelhair", "serve", "--port", "0", "--data", str(folder)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert found is not None
            yield found.group()
        finally:
            process.terminate()
            process.wait()


def move(old: str, new: str) -> str:
    (program,) = re.findall(r"^```python\n(import sys\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", program, old, new], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_everything_arrives_once(tmp_path: Path) -> None:
    with server(tmp_path / "old") as old_url, server(tmp_path / "new") as new_url:
        with Client(old_url) as old, Client(new_url) as new:
            old.create_queue("failed", retention=None)
            old.create_queue("in-turn.fifo")
            for number in range(150):
                old.put("in-turn.fifo", str(number), group="g", key=f"k{number}")
            old.create_queue("jobs", bucket_size=50, visibility_timeout=7, max_deliveries=3, dead_letter_queue="failed")
            old.create_queue("slow", delay=3_600)
            old.put("slow", "has waited", delay=0)
            old.create_queue("events", kind="databag", min_partitions=20, visibility_timeout=7)
            old.put_many("events", [f"event {number}" for number in range(250)])
            old.create_queue("bells", kind="timeline", producer_delay=0)
            old.put("bells", "ring")
            bodies = [Draft(f"job {number}", "text/x-job") for number in range(120)]
            assert all(outcome.error is None for outcome in old.put_many("jobs", bodies))
            old.put("failed", b"\xff not text")
            old.put("jobs", "later", delay=3_600)
            assert move(old_url, new_url) == (
                "bells moved: 1 in flight: 0 delayed: 0\n"
                "events moved: 250 in flight: 0 delayed: 0\n"
                "failed moved: 1 in flight: 0 delayed: 0\n"
                "in-turn.fifo moved: 150 in flight: 0 delayed: 0\n"
                "jobs moved: 120 in flight: 0 delayed: 1\n"
                "slow moved: 1 in flight: 0 delayed: 0\n"
            )
            assert move(old_url, new_url).count("moved: 0") == 6
            for name in ("jobs", "events", "bells"):
                assert new.queue(name).settings == old.queue(name).settings
            assert {seen.text for seen in new.peek("events", 1_000)} == {f"event {number}" for number in range(250)}
            in_turn = new.receive("in-turn.fifo", 1_000)
            assert [(each.text, each.group) for each in in_turn] == [(str(number), "g") for number in range(150)]
            jobs, failed = new.receive("jobs", 1_000), new.receive("failed", 10)
            assert sorted(job.text for job in jobs) == sorted(f"job {number}" for number in range(120))
            assert {job.content_type for job in jobs} == {"text/x-job"}
            assert [letter.body for letter in failed] == [b"\xff not text"]
            assert [message.text for message in new.receive("slow", 10)] == ["has waited"]
