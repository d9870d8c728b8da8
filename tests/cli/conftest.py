"""One real server for the tests of a file, whose store can be made to fail; a queue of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from angelhair import Client
from tests.cli.command import Angelhair
from tests.wire.server import RunningServer, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("queues")) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[Client]:
    """To prepare and to look behind the command's back."""
    with Client(server.url) as connected:
        yield connected


@pytest.fixture
def angelhair(server: RunningServer) -> Iterator[Angelhair]:
    yield Angelhair(server.url)
    server.store.heal()


@pytest.fixture
def name() -> str:
    return f"q-{uuid4().hex[:8]}"


@pytest.fixture
def queue(client: Client, name: str) -> str:
    client.create_queue(name)
    return name
