"""A server that asks for keys, two accounts on it, and a client of each in either protocol."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aws.keys.keyed import Key, Keyed, keyed

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def keyed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with keyed(tmp_path_factory.mktemp("keyed"), "--access-log") as running:
        yield running


@pytest.fixture(scope="session")
def shop(keyed_server: Keyed) -> Key:
    """A key without limits, of an account of its own."""
    return keyed_server.key(keyed_server.account("shop"))


@pytest.fixture(scope="session")
def partner(keyed_server: Keyed) -> Key:
    """One of another account."""
    return keyed_server.key(keyed_server.account("partner"))


@pytest.fixture(scope="session", params=["json", "query"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def ours(keyed_server: Keyed, shop: Key, protocol: str) -> Iterator[Any]:
    with keyed_server.spoken(protocol, shop) as client:
        yield client


@pytest.fixture(scope="session")
def theirs(keyed_server: Keyed, partner: Key, protocol: str) -> Iterator[Any]:
    with keyed_server.spoken(protocol, partner) as client:
        yield client


@pytest.fixture
def server(keyed_server: Keyed) -> Keyed:
    return keyed_server


@pytest.fixture
def name() -> str:
    return f"queue-{next(_numbers)}"
