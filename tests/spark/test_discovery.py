"""Trap 9: where the package is installed, a session knows the format without being told."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from pyspark.sql.datasource import DataSource

import pyspark_angelhair
from angelhair.spark.source import AngelhairDataSource
from tests.spark.sessions import ROOT, WANTED, found_by


def test_a_session_finds_the_format_by_itself(tmp_path: Path) -> None:
    assert found_by("local[1]", tmp_path, "read", "sql") == {part: WANTED[part] for part in ("read", "sql")}


def test_what_spark_finds_takes_no_filters() -> None:
    """Trap 1: a session that nobody has set up for filters refuses a reader that takes them."""
    source = pyspark_angelhair.DefaultSource
    assert issubclass(source, DataSource) and source is AngelhairDataSource
    assert (source.name(), source.takes_filters) == ("angelhair", False)


def test_the_wheel_has_the_module(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=ROOT, check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert "pyspark_angelhair/__init__.py" in zipfile.ZipFile(wheel).namelist()
