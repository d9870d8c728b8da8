"""A queue's tables, declared: `spark-pipelines` makes them, with what the jobs would say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from angelhair.model import NewMessage
from angelhair.spark.pipelines import declared
from angelhair.spark.pipelines.declared import prefix_of
from tests.cli.command import environment
from tests.spark.live import QUICK, on_file

Command = Callable[..., subprocess.CompletedProcess[str]]

SETTINGS = (
    "spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.sql.shuffle.partitions=2", "spark.log.level=ERROR",
)


def test_a_declared_pipeline_runs(spark: SparkSession, command: Command, tmp_path: Path) -> None:
    data, lake, folder = tmp_path / "data", tmp_path / "lake", tmp_path / "pipeline"
    data.mkdir()
    with on_file(data) as live:
        queue = live.create(**QUICK, archive=True)
        live.put(queue, [NewMessage(b'{"country": "NO"}')] * 30 + [NewMessage(b'{"country": "DE"}')] * 20)
        live.receive(queue, 1, 0)
        live.drain(queue, 40)
        live.work_until(queue, "repair", 4)
    where = ("--queue", queue, "--lake", str(lake), "--data", str(data))
    assert command("archive", *where).returncode == 0
    ran = command("declare", *where, "--field", "country", "--into", str(folder))
    assert ran.returncode == 0, ran.stderr
    again = command("declare", *where, "--into", str(folder))
    assert again.returncode == 1 and "is there already" in again.stderr
    pipelines = Path(sys.executable).parent / "spark-pipelines"
    ended = subprocess.run(
        [pipelines, "run", *(word for setting in SETTINGS for word in ("--conf", setting))], cwd=folder,
        env=environment(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"), capture_output=True, text=True,
        timeout=300, check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    tables = {
        name: [row.asDict() for row in spark.read.parquet(f"{folder}/spark-warehouse/{queue}_{name}").collect()]
        for name in ("messages", "states", "minutes", "poison", "tops")
    }
    assert len(tables["messages"]) == 50
    assert {row["kept_in"] for row in tables["messages"]} == {"lake", "queue"}
    assert {row["state"]: row["messages"] for row in tables["states"]} == {"acked": 40, "waiting": 10}
    assert sum(row["came"] for row in tables["minutes"]) == 50
    assert sum(row["acked"] for row in tables["minutes"]) == 40
    assert {row["id"]: row["deliveries"] for row in tables["poison"]}["0-0"] == 2
    assert {row["value"]: row["messages"] for row in tables["tops"]} == {"NO": 30, "DE": 20}


@pytest.mark.parametrize(("queue", "prefix"), [("orders", "orders"), ("orders-eu.fifo", "orders_eu_fifo")])
def test_names_that_catalogs_take(queue: str, prefix: str) -> None:
    assert prefix_of(queue) == prefix


def test_no_secret_is_written(tmp_path: Path) -> None:
    spec, code = declared.write_spec(tmp_path, 'od"d', {"queue": 'od"d', "contactPoints": "127.0.0.1"})
    assert 'angelhair.queue: "od\\"d"' in spec.read_text()
    assert "password" not in spec.read_text() + code.read_text()
