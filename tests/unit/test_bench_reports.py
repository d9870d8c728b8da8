"""Reports of `make bench`."""

from __future__ import annotations

from pathlib import Path

from bench.__main__ import Began, write
from bench.sheet import Section


def test_a_second_report_of_a_commit_stands_beside_the_first(tmp_path: Path) -> None:
    """Of other parts, most likely: it took the place of the first, and its figures were gone."""
    began = Began("today", 0.0)
    written = [write({what: Section(what, [f"of {what}"], [])}, began, tmp_path) for what in ("embedded", "databags")]
    assert len(set(written)) == 2
    assert ["of embedded" in path.read_text() for path in written] == [True, False]
