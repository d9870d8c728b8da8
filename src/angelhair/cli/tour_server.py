"""A server in a process of its own, for the tour to kill: it gets elected, takes a message and never acks it.

Tells what it does as lines of JSON. Ends when its standard input does, so that it cannot outlive the tour.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from angelhair import limits
from angelhair.cli.tour_world import ShiftedClock, deliveries_of
from angelhair.engine.engine import Engine
from angelhair.identities import RandomIdentities
from angelhair.model import Ask
from angelhair.server.workers import Workers
from angelhair.stores.sqlite import open_store


async def serve(path: str, account: str, queue: str, visibility_ms: int, ahead_ms: int) -> None:
    store = await open_store(path)
    engine = Engine(store, RandomIdentities(), ShiftedClock(ahead_ms))
    while not _elected(engine):
        await engine.step(account, queue)
        await asyncio.sleep(limits.STEP_SOON_MS / 1000)
    (got,) = await engine.receive(account, queue, [Ask(1, visibility_ms)])
    (delivery,) = deliveries_of(got)
    workers = Workers(engine, account)
    workers.start([queue])
    told = {"server": engine.memory.server, "id": str(delivery.id), "receipt": delivery.receipt,
            "deliveries": delivery.deliveries, "visible_at_ms": delivery.visible_at_ms}
    print(json.dumps(told), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await workers.stop()
    await store.close()


def _elected(engine: Engine) -> bool:
    return any(worker.lease.held(engine.clock.now()) for worker in engine.memory.workers.values())


def main(arguments: Sequence[str]) -> None:
    path, account, queue, visibility_ms, ahead_ms = arguments
    asyncio.run(serve(path, account, queue, int(visibility_ms), int(ahead_ms)))


if __name__ == "__main__":
    main(sys.argv[1:])
