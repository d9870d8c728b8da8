"""Connections: shared by threads and tasks, bounded, closed when idle for too long and when the client is."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from angelhair import limits
from angelhair.client import AsyncClient, Client
from angelhair.client.lines import Lines
from tests.client.server import Served


def test_threads_share_a_client(server: Served) -> None:
    with Client(server.url, retry=None) as client, ThreadPoolExecutor(16) as threads:
        client.create_queue("chores")
        ids = list(threads.map(lambda number: client.put("chores", str(number)), range(200)))
        assert len(set(ids)) == 200
        assert len(client.receive("chores", 1_000)) == 200


def test_more_tasks_than_connections_wait_for_their_turn(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_CONNECTIONS", 4)

    async def main() -> None:
        async with AsyncClient(server.url, retry=None) as client:
            await client.create_queue("chores")
            ids = await asyncio.gather(*(client.put("chores", b"x") for _ in range(100)))
            assert len(set(ids)) == 100
            assert len(client._sender._lines._all) <= 4

    asyncio.run(main())


def test_a_closed_client_says_so(client: Any) -> None:
    client.create_queue("chores")
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.queue("chores")


def test_what_was_idle_for_too_long_is_closed(server: Served, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create_queue("chores")
    monkeypatch.setattr(limits, "CLIENT_IDLE_SECONDS", 0.0)
    for _ in range(3):
        assert client.receive("chores") == []


def test_the_line_that_was_used_last_is_used_next() -> None:
    made: list[threading.Event] = []

    def make() -> threading.Event:
        made.append(threading.Event())
        return made[-1]

    lines = Lines(make)
    first, second = lines.take(), lines.take()
    assert made == [first, second]
    assert lines.give_back(second) is None
    assert lines.give_back(first) is None
    assert lines.take() is first
    assert sorted(map(id, lines.close())) == sorted(map(id, made)), "also those that are in use"
