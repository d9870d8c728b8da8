"""docs/spark.md: its tables are what the code says, and its examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from angelhair.model import NewMessage, QueueSettings
from angelhair.settings import ACCOUNT
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
    examples = examples.replace("angelhair-data", str(tmp_path)).replace("lake/", f"{tmp_path}/lake/")
    with on_file(tmp_path) as live:
        live.run(live.engine.create_queue(ACCOUNT, "orders", QueueSettings(**QUICK)))
        live.put("orders", [NewMessage(b"order %d" % number) for number in range(100)])
        live.drain("orders", 20)
        live.work_until("orders", "settled", 2)
        exec(compile(examples, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert spark.read.parquet(str(tmp_path / "lake" / "orders")).count() >= 20
    assert re.search(r"acked\W+20\b", said) and re.search(r"waiting\W+80\b", said)
    assert "0-70" in said and "0-79" in said and "0-80" not in said
