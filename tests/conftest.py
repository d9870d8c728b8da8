"""Options and marks that hold for every test."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.disk import DISK

CLUSTER_TESTS = Path(__file__).parent / "cluster"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record",
        action="store_true",
        default=False,
        help="write the golden scenarios anew from what happens now, to be read and committed",
    )


def pytest_configure() -> None:
    """Whoever runs the tests in the background of a script has interrupts ignored, and so would every process that a
    test starts: those that are interrupted to see how they end would never end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in tests/cluster needs the cluster; elsewhere a test or a parameter says so itself."""
    for item in items:
        if item.path.is_relative_to(CLUSTER_TESTS):
            item.add_marker(pytest.mark.cassandra)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Before the workers of a parallel run are started."""
    if config.option.markexpr == "cassandra":
        from cluster.testing import launch_for_workers

        launch_for_workers()


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A directory for what is killed while it writes; that of `tmp_path` may lie in memory."""
    DISK.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=DISK))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def pytest_sessionfinish() -> None:
    # Only who started nodes has imported this, and only they need a driver for it.
    if (testing := sys.modules.get("cluster.testing")) is not None:
        testing.stop_shared_cluster()
