"""On executors that are processes of their own: source, stream and archive run there as they do in one process."""

from __future__ import annotations

from pathlib import Path

from tests.spark.sessions import WANTED, found_by


def test_source_stream_and_archive_run_on_executors(tmp_path: Path) -> None:
    found = found_by("local-cluster[2,1,1024]", tmp_path, "read", "stream", "archive", "lake", "executors")
    assert found.pop("executors") == 2
    assert found == {part: WANTED[part] for part in ("read", "stream", "archive", "lake")}
