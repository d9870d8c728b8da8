"""One Spark session, and queues on both stores."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from angelhair.spark import register
from tests.spark.live import Live, on_cassandra, on_file


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
