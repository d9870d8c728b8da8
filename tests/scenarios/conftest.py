"""Runs every test of this folder once for each store, and `async def` tests on their store's loop."""

from __future__ import annotations

import pytest

from tests.queues import run_in_session, session, world

__all__ = ["session", "world"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_in_session(pyfuncitem)
