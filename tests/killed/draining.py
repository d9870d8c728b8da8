"""After the faults: receives and acks until nothing is owed to anybody and nothing comes any more."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from tests.killed.ledger import Ledger
from tests.killed.load import ACCOUNT, QUEUE, Server, receive_and_ack

DRAIN_SECONDS = 120
"""What is not delivered by then counts as lost: many times any time-out that was set."""


async def drain(servers: Sequence[Server], ledger: Ledger, quiet_seconds: float, run_name: str) -> list[str]:
    """Ends when nothing is owed and nothing has come for `quiet_seconds`. Says what is wrong with the queue then."""
    dice = random.Random(0)
    deadline = time.monotonic() + DRAIN_SECONDS
    last_seen = time.monotonic()
    while time.monotonic() < deadline:
        for number, server in enumerate(servers):
            entries: list[str] = []
            if await receive_and_ack(server.batching, f"{run_name}/{number}", dice, entries.append):
                last_seen = time.monotonic()
            ledger.enter(entries)
        if time.monotonic() - last_seen > quiet_seconds and not ledger.owed():
            break
    return await _left_behind(servers[0])


async def _left_behind(server: Server) -> list[str]:
    complaints = []
    stats = await server.engine.stats(ACCOUNT, QUEUE)
    if stats.visible or stats.in_flight or stats.delayed:
        complaints.append(f"the drained queue still has {stats}")
    for number, marks in (await server.engine.marks(ACCOUNT, QUEUE)).items():
        order = (marks.dropped, marks.floor, marks.repair, marks.settled, marks.final, marks.reader)
        if list(order) != sorted(order):
            complaints.append(f"lane {number}: the marks are out of order: {marks}")
    return complaints

