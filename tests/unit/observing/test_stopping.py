"""Background work ends when it is told to, also if something wakes it in that very moment."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.engine import Engine
from angelhair.model import QueueSettings
from angelhair.server.workers import Workers
from angelhair.stores.memory import MemoryStore
from tests.queues import Dial, Identities

PATIENCE_SECONDS = 20


@pytest.mark.parametrize("turns", range(6))
def test_workers_that_are_woken_while_they_stop_stop(turns: int) -> None:
    """An ack wakes a queue's worker; SIGTERM comes some turns of the loop later."""

    async def main() -> None:
        dial = Dial()
        engine = Engine(MemoryStore(dial.now_ms), Identities(), dial)
        await engine.create_queue("me", "jobs", QueueSettings())
        workers = Workers(engine, "me")
        workers.start(["jobs"])
        while workers.steps == 0:
            await asyncio.sleep(0)
        for _ in range(50):  # until it rests
            await asyncio.sleep(0)
        workers.wake("jobs")
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await workers.stop()
        assert workers.queues == []

    asyncio.run(main())
