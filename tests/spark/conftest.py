"""One Spark session, and queues on both stores."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from angelhair.cli.main import main
from angelhair.cli.pipeline import jobs
from angelhair.spark import register
from tests.spark.live import Live, on_cassandra, on_file
from tests.spark.sessions import SHORT_LIVED

# Of every Spark that tests start, in processes of their own too: what they start inherits it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Without it tasks would run on whatever `python3` is first on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("angelhair-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield register(session)
    session.stop()


@pytest.fixture(scope="session", params=["sqlite", pytest.param("cassandra", marks=pytest.mark.cassandra)])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    opened = on_cassandra() if request.param == "cassandra" else on_file(tmp_path_factory.mktemp("queues"))
    with opened as queues:
        yield queues


@pytest.fixture
def command(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`angelhair pipeline`, from its words to what it prints, in the session of the tests: starting one takes longer
    than most jobs."""

    @contextmanager
    def session_of(_: argparse.Namespace) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(jobs, "_session_of", session_of)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        try:
            code = main(["pipeline", *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, complaints = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, out, complaints)

    return run
