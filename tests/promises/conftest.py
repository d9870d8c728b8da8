"""Runs every test of this folder once for each store, and `async def` tests on their store's loop."""

from __future__ import annotations

import pytest

from tests.queues import run_in_session, session, world

__all__ = ["session", "world"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_in_session(pyfuncitem)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cassandra times what expires by its own clock, which no test can turn on; that it expires there is the contract's
    to show."""
    left_out = [
        item for item in items if item.get_closest_marker("ttl_by_test_clock") and "[cassandra" in item.nodeid
    ]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
