"""Options and marks that hold for every test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

CLUSTER_TESTS = Path(__file__).parent / "cluster"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record",
        action="store_true",
        default=False,
        help="write the golden scenarios anew from what happens now, to be read and committed",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in tests/cluster needs the cluster; elsewhere a test or a parameter says so itself."""
    for item in items:
        if item.path.is_relative_to(CLUSTER_TESTS):
            item.add_marker(pytest.mark.cassandra)


def pytest_sessionfinish() -> None:
    # Only who started nodes has imported this, and only they need a driver for it.
    if (testing := sys.modules.get("cluster.testing")) is not None:
        testing.stop_shared_cluster()
