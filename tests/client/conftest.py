"""Both clients, each against a real server, through one face: what is tested of one is tested of the other."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from angelhair.client import AsyncClient, Client, Retry
from tests.client.server import Served

QUICK = Retry(total_seconds=20.0, first_pause_seconds=0.01, most_pause_seconds=0.05)


class OnLoop:
    """An `AsyncClient` whose verbs can be called from a test that has no event loop running."""

    def __init__(self, runner: asyncio.Runner, *args: Any, **kwargs: Any) -> None:
        self._runner = runner
        self._client = runner.run(self._make(*args, **kwargs))

    async def _make(self, *args: Any, **kwargs: Any) -> AsyncClient:
        return AsyncClient(*args, **kwargs)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            started = getattr(self._client, name)(*args, **kwargs)
            if inspect.isasyncgen(started):
                return self._runner.run(self._listed(started))
            return self._runner.run(started)

        return call

    async def _listed(self, items: AsyncIterator[Any]) -> list[Any]:
        return [item async for item in items]


Connect = Callable[..., Any]


@contextmanager
def connecting(kind: str) -> Iterator[Connect]:
    """Makes clients of one kind, and closes them all."""
    made: list[Any] = []
    with asyncio.Runner() as runner:

        def connect(url: str, **options: Any) -> Any:
            options = {"retry": QUICK, **options}
            client = Client(url, **options) if kind == "blocking" else OnLoop(runner, url, **options)
            made.append(client)
            return client

        try:
            yield connect
        finally:
            for client in made:
                client.close()


@pytest.fixture(params=["blocking", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    with connecting(request.param) as connect:
        yield connect


@pytest.fixture
def server() -> Iterator[Served]:
    with Served() as served:
        yield served


@pytest.fixture
def client(server: Served, connect: Connect) -> Any:
    """Typed as Any: the two kinds differ in colour, and the tests speak to both."""
    return connect(server.url)
