"""W5, W6, W8, W9 from outside: workers as processes, one killed -9, one stopped for longer than its lock, on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from angelhair import Client
from bench.processes import embedded
from tests.killed.timeline_bar import Bar, play_incidents, play_sharing

BAR = Bar(messages=3_000, seconds=12.0, lock_seconds=3.0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded(str(tmp_path_factory.mktemp("timelines"))) as running:
        yield running.url


def test_w05_w06_w09_nothing_is_lost_when_one_is_killed_and_one_is_stopped(url: str, tmp_path: Path) -> None:
    """W5, W6, W9"""
    with Client(url) as client:
        report = play_incidents(client, [url], tmp_path, BAR)
    print(report)
    assert report.complaints == []


def test_w08_shards_are_shared_and_taken_over(url: str, tmp_path: Path) -> None:
    """W8"""
    with Client(url) as client:
        print(play_sharing(client, url, tmp_path, BAR))
