"""These attacks are played on memory and on SQLite, with the tools of the promises' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.queues import Session, open_session, run_in_session, world

__all__ = ["world"]


@pytest.fixture(scope="session", params=["memory", "sqlite"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(request.param, tmp_path_factory.mktemp("queues")) as opened:
        yield opened


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_in_session(pyfuncitem)
