"""R16: a server killed -9 in the middle of its fan-out has confirmed nothing that does not reach every queue."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from angelhair import limits
from angelhair.clock import SystemClock
from angelhair.engine.topics.postings import OUTBOX, hidden_account
from angelhair.engine.topics.values import QUEUE, NewSubscription, Publication, Published, TopicSettings, queue_endpoint
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, QueueSettings
from angelhair.server.service import Service
from angelhair.settings import ACCOUNT
from angelhair.stores.sqlite import open_store

QUEUES = ("a", "b", "c")
LIVES = 4
CONFIRMED_A_LIFE = 60
"""So many are confirmed before the kill: with several publishers, some are always half way."""
VISIBILITY_MS = 300
"""The usual half minute would be waited for after every kill."""
PUBLISHERS = 8
PATIENCE_SECONDS = 60


async def _service(path: str) -> Service:
    limits.OUTBOX_VISIBILITY_MS = VISIBILITY_MS
    limits.FANOUT_LOOK_MOST_SECONDS = limits.FANOUT_LOOK_SECONDS = 0.1
    service = Service(await open_store(Path(path)), RandomIdentities(), SystemClock())
    service.start()
    await service.topics.verbs.create(ACCOUNT, "news", TopicSettings())
    for queue in QUEUES:
        await service.create_queue(ACCOUNT, queue, QueueSettings())
        await service.topics.subscribe(ACCOUNT, "news", NewSubscription(QUEUE, queue_endpoint(ACCOUNT, queue)))
    return service


async def _live(path: str, life: str) -> None:
    """Publishes without end, and says what was confirmed."""
    service = await _service(path)

    async def publish(name: str) -> None:
        for number in range(1_000_000):
            body = f"{life}.{name}.{number}"
            (outcome,) = await service.topics.publish(ACCOUNT, "news", [Publication(body.encode())])
            if isinstance(outcome, Published):
                os.write(1, f"{body}\n".encode())

    await asyncio.gather(*[publish(str(number)) for number in range(PUBLISHERS)])


async def _collect(path: str, confirmed: set[str]) -> dict[str, list[str]]:
    service = await _service(path)
    got: dict[str, list[str]] = {queue: [] for queue in QUEUES}
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and not all(confirmed <= set(bodies) for bodies in got.values()):
        for queue in QUEUES:
            found = await service.receive(ACCOUNT, queue, Ask(1_000), 0.1)
            got[queue] += [delivery.body.decode() for delivery in found]
            if found:
                await service.ack(ACCOUNT, queue, [delivery.receipt for delivery in found])
    while (stats := await service.engine.stats(hidden_account(ACCOUNT), OUTBOX)).visible + stats.in_flight:
        assert time.monotonic() < end, "the outbox never empties"
        await asyncio.sleep(0.1)
    await service.stop()
    return got


def test_r16_a_server_killed_while_it_spreads_loses_nothing(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R16"""
    for bound in ("OUTBOX_VISIBILITY_MS", "FANOUT_LOOK_MOST_SECONDS", "FANOUT_LOOK_SECONDS"):
        monkeypatch.setattr(limits, bound, getattr(limits, bound))
    path = str(on_disk / "killed.db")
    confirmed: set[str] = set()
    for life in range(LIVES):
        process = subprocess.Popen([sys.executable, "-m", __name__, path, str(life)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            confirmed.add(line.strip())
            if len(confirmed) >= (life + 1) * CONFIRMED_A_LIFE:
                process.send_signal(signal.SIGKILL)
                break
        # What it said before it died counts, too; a line that was cut off was not said.
        confirmed.update(line.strip() for line in process.stdout if line.endswith("\n"))
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        process.stdout.close()
    got = asyncio.run(_collect(path, confirmed))
    assert len(confirmed) >= LIVES * CONFIRMED_A_LIFE
    for queue in QUEUES:
        assert confirmed - set(got[queue]) == set(), f"lost in {queue}"
    print(f"{len(confirmed)} confirmed, {[len(bodies) - len(set(bodies)) for bodies in got.values()]} twice")


if __name__ == "__main__":
    asyncio.run(_live(sys.argv[1], sys.argv[2]))
