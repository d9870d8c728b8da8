"""Over Spark Connect: the client has no Java, and the server's tasks find the package by themselves."""

from __future__ import annotations

from pathlib import Path

from tests.spark.sessions import WANTED, connect_server, found_by


def test_source_stream_and_archive_run_over_connect(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        found = found_by(address, tmp_path, "session", *WANTED)
    assert found.pop("session") == "pyspark.sql.connect.session"
    assert found == WANTED
