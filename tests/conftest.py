"""Options and marks that hold for every test."""

from __future__ import annotations

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
