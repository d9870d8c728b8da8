"""Runs of messages, for tests of what becomes of them when they are tried more than once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from angelhair.engine.ledger import Run
from angelhair.engine.runs import Bodies
from angelhair.model import NewMessage
from tests.queues import DAY, SECOND, Server, World

ALWAYS = 1_000
SETTINGS: dict[str, Any] = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": 0}


@pytest.fixture(params=["one by one", "in columns"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is nothing but its body goes a shorter way; the promises are the same."""
    monkeypatch.setattr(sys.modules[__name__], "in_columns", request.param == "in columns")


in_columns = False


def messages(count: int) -> Sequence[NewMessage]:
    batch = [NewMessage(b"m%d" % number) for number in range(count)]
    return Bodies([message.body for message in batch]) if in_columns else batch


def run_of(batch: Sequence[NewMessage], writer: str = "task", window_ms: int = DAY) -> Run:
    return Run(writer, 0, len(batch), "".join(message.body.decode() for message in batch), window_ms)


async def put(server: Server, run: Run, batch: Sequence[NewMessage]) -> bool:
    """Whether there was anything left to do."""
    begun = await server.engine.begin_run(server.world.account, "orders", run)
    if begun is None:
        return False
    await server.engine.finish_run(begun, batch)
    return True


async def all_of(world: World, server: Server) -> Counter[bytes]:
    """Every message that comes, until repair has looked into every bucket."""
    got: Counter[bytes] = Counter()
    for _ in range(4):
        got.update(delivery.body for delivery in await server.drain("orders"))
        await world.work("orders", 30 * SECOND, [server])
    return got
