"""docs/spark.md and docs/spark-writing.md: their tables are what the code says, and their examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from angelhair.clock import SystemClock
from angelhair.model import DATABAG, FIFO, TIMELINE, NewMessage, QueueSettings
from angelhair.settings import ACCOUNT, DATABASE_NAME
from angelhair.spark.pipelines.archive import archive
from angelhair.spark.place import Place
from tests.queues import Identities
from tests.spark.live import QUICK, on_file

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "spark.md"


def test_the_tables_are_up_to_date() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "spark_page"), "--check"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_examples_run(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = "".join(re.findall(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    examples = examples.replace("angelhair-data", str(tmp_path)).replace("arrived/", f"{tmp_path}/arrived/")
    examples = examples.replace('.option("lake", "lake")', f'.option("lake", "{tmp_path}/lake")')
    with on_file(tmp_path) as live:
        live.run(live.engine.create_queue(ACCOUNT, "orders", QueueSettings(**QUICK, archive=True)))
        live.run(live.engine.create_queue(ACCOUNT, "reminders", QueueSettings(kind=TIMELINE, lanes=1)))
        dues_ms = [SystemClock().now().wall_ms + days * 86_400_000 for days in (1, 2, 3, 30)]
        live.put("reminders", [NewMessage(b'{"sku": "none"}', due_ms=due_ms) for due_ms in dues_ms])
        live.run(live.engine.create_queue(ACCOUNT, "events", QueueSettings(kind=DATABAG)))
        live.put("events", [NewMessage(b'{"sku": "none"}')] * 7)
        live.put("orders", [NewMessage(b'{"sku": "sku of %d"}' % number) for number in range(100)])
        live.drain("orders", 20)
        live.work_until("orders", "repair", 2)
        place = Place(path=str(tmp_path / DATABASE_NAME))
        archive(spark, place, ACCOUNT, "orders", str(tmp_path / "lake"), Identities())
        exec(compile(examples, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert spark.read.parquet(str(tmp_path / "arrived" / "orders")).count() >= 20
    assert re.search(r"acked\W+20\b", said) and re.search(r"waiting\W+80\b", said)
    assert re.search(r"lake\W+acked\W+20\b", said) and re.search(r"queue\W+waiting\W+80\b", said)
    assert re.search(r"0\W+delayed\W+3\b", said)
    assert re.search(r"waiting\W+7\b", said) and "oldest" in said
    assert "sku of 7" in said
    assert "0-70" in said and "0-79" in said and "0-80" not in said


def test_the_examples_of_writing_run(spark: SparkSession, tmp_path: Path) -> None:
    page = ROOT / "docs" / "spark-writing.md"
    examples = "".join(re.findall(r"```python\n(.+?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    with on_file(tmp_path) as live:
        live.run(live.engine.create_queue(ACCOUNT, "orders", QueueSettings()))
        live.run(live.engine.create_queue(ACCOUNT, "orders.fifo", QueueSettings(kind=FIFO)))
        exec(compile(examples.replace("angelhair-data", str(tmp_path)), str(page), "exec"), {})
        assert {delivery.body for delivery in live.receive("orders", 10)} == {b"one", b"two"}
        in_order = [(delivery.body, delivery.group) for delivery in live.receive("orders.fifo", 10)]
        assert in_order == [(b"one", "customer 7"), (b"two", "customer 7")]
