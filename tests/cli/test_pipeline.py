"""`angelhair pipeline` where something that it may need is not installed. What the jobs do is in tests/spark."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.identities import RandomIdentities
from angelhair.model import QueueSettings
from angelhair.settings import ACCOUNT, DATABASE_NAME
from angelhair.stores.sqlite import open_store
from tests.cli.command import ROOT, Angelhair

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A server's directory, with a queue `orders`."""

    async def make() -> None:
        engine = Engine(await open_store(tmp_path / DATABASE_NAME), RandomIdentities(), SystemClock())
        await engine.create_queue(ACCOUNT, "orders", QueueSettings())
        await engine.store.close()

    asyncio.run(make())
    return tmp_path


@pytest.fixture
def without_spark(tmp_path: Path) -> str:
    """A PYTHONPATH on which the extra `spark` is not installed."""
    missing = tmp_path / "missing"
    missing.mkdir()
    for library in ("pyspark", "pyarrow", "pandas", "deltalake", "pyiceberg"):
        (missing / f"{library}.py").write_text(f"raise ModuleNotFoundError(name={library!r})")
    return f"{missing}:{ROOT / 'src'}"


@pytest.mark.parametrize("home", ["", "nowhere"])
def test_without_java_it_is_one_line(data: Path, home: str) -> None:
    said = Angelhair(NOWHERE)("pipeline", "archive", "--queue", "orders", "--lake", str(data / "lake"), "--data",
                              str(data), expect=1, PATH=str(data), JAVA_HOME=home and str(data / home))
    assert said.err == "angelhair pipeline archive: Spark needs Java 17, as `java` on the path or in JAVA_HOME\n"


def test_a_java_that_spark_does_not_take(data: Path) -> None:
    """Spark is started by a script that ends with it, as with one that is too old."""
    java = data / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    said = Angelhair(NOWHERE)("pipeline", "archive", "--queue", "orders", "--lake", str(data / "lake"), "--data",
                              str(data), expect=1, JAVA_HOME=str(data))
    assert said.err.splitlines()[-1] == ("angelhair pipeline archive: Spark's Java ended before Spark began; Spark "
                                         "needs Java 17, as `java` on the path or in JAVA_HOME")


def test_without_spark_jobs_say_what_to_install(data: Path, without_spark: str) -> None:
    said = Angelhair(NOWHERE)("pipeline", "archive", "--queue", "orders", "--lake", str(data / "lake"), "--data",
                              str(data), expect=1, PYTHONPATH=without_spark)
    assert said.err.endswith(" is not installed; run `make setup` and use .venv/bin/angelhair\n")
    assert said.err.count("\n") == 1


def test_retire_needs_no_spark(data: Path, without_spark: str) -> None:
    said = Angelhair(NOWHERE)("pipeline", "retire", "--queue", "orders", "--data", str(data),
                              PYTHONPATH=without_spark)
    assert said.out == "0 buckets went; 0 finished ones wait for the end of their history\n"


def test_declare_needs_no_spark(data: Path, without_spark: str) -> None:
    folder = data / "declared"
    said = Angelhair(NOWHERE)("pipeline", "declare", "--queue", "orders", "--lake", str(data / "lake"), "--data",
                              str(data), "--into", str(folder), PYTHONPATH=without_spark)
    assert said.out.splitlines()[-1] == f"now: cd {folder} && spark-pipelines run"
