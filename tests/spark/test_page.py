"""docs/spark.md: its tables are what the code says, and its example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from angelhair.model import NewMessage, QueueSettings
from tests.spark.live import ACCOUNT, on_file

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "spark.md"


def test_the_tables_are_up_to_date() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "spark_page"), "--check"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_example_runs(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with on_file(tmp_path) as live:
        live.run(live.engine.create_queue(ACCOUNT, "orders", QueueSettings(bucket_size=10)))
        live.put("orders", [NewMessage(b"order %d" % number) for number in range(100)])
        live.drain("orders", 20)
        exec(compile(example.replace("angelhair-data", str(tmp_path)), str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"acked\W+20\b", said) and re.search(r"waiting\W+80\b", said)
    assert "0-70" in said and "0-79" in said and "0-80" not in said
