"""These attacks are played on memory and on SQLite, with the tools of the promises' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from angelhair import limits
from tests.queues import Session, World, open_session, run_in_session, world

__all__ = ["world"]


@pytest.fixture(scope="session", params=["memory", "sqlite"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(request.param, tmp_path_factory.mktemp("queues")) as opened:
        yield opened


@pytest.fixture
def buried(session: Session, world: World) -> Iterator[None]:
    """For tests that delete many queues: one store serves the whole session, and who buries buries everybody's."""

    async def bury_all() -> None:
        while await world.server().engine.bury_step():
            "A portion of one of them."

    session.run(bury_all())
    yield
    session.run(bury_all())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_in_session(pyfuncitem)


@pytest.fixture
def delays_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks on messages that wait in buckets for hours: those of runs do, and those of servers before the line."""
    monkeypatch.setattr(limits, "DELAY_LINE_MS", limits.DURATION_MAXIMUM_MS)
