"""A small restless workload on all verbs, under whatever the seed brings; used where any activity will do.

Run as a program it prints the hash of a seed's trace, so that two interpreters can be compared.
"""

from __future__ import annotations

import hashlib
import sys
from functools import partial

from angelhair.engine.store import Change, Partition, Row, RowChange, Span, Write
from angelhair.errors import StoreError
from angelhair.simulation import Nemesis, NoAnswer, Process, World, ask
from tests.simulation.core.helpers import BODIES, STATES

SERVERS = ("server-1", "server-2", "server-3")
DURATION_MS = 120_000
REST_MS = 400


async def _serve(world: World, process: Process) -> int:
    number = world.random.randrange(4)
    store = process.store
    plain, conditional = Partition(BODIES, f"p{number}"), Partition(STATES, f"c{number}")
    rows = [Row(world.random.randrange(50), {"body": world.identities.fresh()}) for _ in range(5)]
    outcomes = await store.write([Write(plain, rows), Write(Partition(BODIES, "all"), rows[:1])])
    found, _ = await store.read([Span(conditional, limit=3), Span(plain)])
    row = found.rows[0] if found.rows else Row(1, {})
    count = row.values.get("count")
    raised = RowChange(row.key, {"count": count}, {"count": (count or 0) + 1})
    await store.change([Change(conditional, [raised], set_flags={"final": 1})])
    if world.random.random() < 0.1:
        await store.drop([plain, conditional])
    await store.time_ms()
    return sum(outcome is None for outcome in outcomes)


async def _client(world: World, process: Process) -> None:
    while True:
        server = world.processes[world.random.choice(SERVERS)]
        try:
            await ask(world.faults, process, server, partial(_serve, world, server), timeout_ms=5_000)
        except (StoreError, NoAnswer):
            await process.sleep(REST_MS)
        await process.sleep(world.random.randrange(REST_MS))


def play(seed: int, trace: list[str] | None = None) -> World:
    """One seed, with all its faults and a calm end."""
    world = World(seed, trace=None if trace is None else trace.append)

    def boot(process: Process) -> None:
        async def background() -> None:
            while True:
                await process.sleep(REST_MS)
                try:
                    await _serve(world, process)
                except StoreError:
                    continue

        process.spawn(background())

    for name in SERVERS:
        world.start(name, boot)
    nemesis = Nemesis(world, SERVERS)
    nemesis.start()
    client = world.start("client")
    for _ in range(3):
        client.spawn(_client(world, client))
    world.run_for_ms(DURATION_MS)
    nemesis.stop()
    world.calm(flush=True)
    world.run_for_ms(DURATION_MS // 10)
    world.close()
    return world


def fingerprint(seed: int) -> str:
    lines: list[str] = []
    world = play(seed, lines)
    lines.append(f"{world.steps} {world.faults.counts} {world.faults.observed}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(fingerprint(int(argument)))
