"""`angelhair cluster`: a table of servers, or JSON."""

from __future__ import annotations

import pytest

from angelhair.engine.members import Holdings, Presence
from angelhair.engine.schema import MEMBERS
from tests.cli.command import Angelhair
from tests.faults import NEVER_SENT
from tests.wire.server import RunningServer

STARTED_MS = 1_700_000_000_000


@pytest.fixture
def identity(server: RunningServer) -> str:
    membership = server.service.engine.membership
    presence = Presence("http://10.0.0.1:9324", "queues-1", 2, "1.2.3", STARTED_MS)
    server.run(membership.step(presence, Holdings(12, 3)))
    return membership.id


def test_lines_for_programs(angelhair: Angelhair, identity: str) -> None:
    assert angelhair("cluster").rows == [
        ["http://10.0.0.1:9324", "queues-1", "2", "1.2.3", "2023-11-14T22:13:20.000Z", "12", "3", identity]
    ]


def test_json(angelhair: Angelhair, identity: str) -> None:
    assert angelhair("cluster", "--json").json == {
        "server": identity,
        "members": [{
            "id": identity, "address": "http://10.0.0.1:9324", "host": "queues-1", "process": 2, "version": "1.2.3",
            "started_at": "2023-11-14T22:13:20.000Z", "lanes": 12, "shards": 3,
        }],
    }


def test_a_table_on_a_terminal(angelhair: Angelhair, identity: str) -> None:
    shown = angelhair.on_terminal("cluster", columns=160).out
    assert "ADDRESS" in shown and "LANES" in shown and identity in shown
    narrow = angelhair.on_terminal("cluster", columns=80, NO_COLOR="1", TERM="dumb").out
    assert "http://10.0.0.1:9324" in narrow and "HOST" not in narrow
    assert max(len(line) for line in narrow.splitlines()) <= 80


def test_a_store_that_does_not_answer(angelhair: Angelhair, server: RunningServer) -> None:
    server.store.next("read", MEMBERS, NEVER_SENT, times=100)
    angelhair("cluster", "--retry", "0", expect=69)
