"""One server for all tests of this folder; every test has queues of its own on it, under names that no other uses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.wire.rest.calls import Rest
from tests.wire.server import RunningServer, running_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("rest")) as server:
        yield server


@pytest.fixture
def server(shared_server: RunningServer) -> Iterator[RunningServer]:
    """The server, whose store is healthy again afterwards."""
    yield shared_server
    shared_server.store.heal()


@pytest.fixture
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as opened:
        yield opened


@pytest.fixture
def name() -> str:
    """A name that no queue has had."""
    return f"queue-{next(_numbers)}"


@pytest.fixture
def make(server: RunningServer, client: httpx.Client) -> Iterator[Callable[..., Rest]]:
    """Makes a queue with these settings. It goes with its test: hundreds would keep the server busy with nothing."""
    made: list[Rest] = []

    def making(**settings: object) -> Rest:
        rest = Rest(client, server, f"queue-{next(_numbers)}")
        assert client.put(rest.path, json=settings).status_code == 201
        made.append(rest)
        return rest

    yield making
    server.store.heal()
    for rest in made:
        assert client.delete(rest.path).status_code in (204, 404)
