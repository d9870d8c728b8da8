"""How fast the simulated world runs here: `python -m angelhair.simulation.speed [seeds]`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

from angelhair.engine.store import Applied, Change, Partition, Row, RowChange, Span, Table, Write
from angelhair.errors import StoreError
from angelhair.simulation.faults import NO_FAULTS
from angelhair.simulation.nemesis import Nemesis
from angelhair.simulation.process import Process
from angelhair.simulation.world import World

SEEDS = 20
SERVERS = 3
WORKERS = 4
ROUNDS = 100
BODIES = Table("speed_bodies", conditional=False, key=int, columns={"body": bytes, "at": int})
STATES = Table(
    "speed_states", conditional=True, key=int, columns={"delivery": int, "settled": int}, flags={"final": int}
)


async def _work(process: Process, worker: int, rows: int) -> None:
    """About what a message costs its store: a blind write, a read, a claim and an ack, for a group of `rows`."""
    store = process.store
    for number in range(ROUNDS):
        bucket = f"{process.name}/{worker}/{number // 10}"
        keys = range(number * rows, number * rows + rows)
        try:
            bodies = [Row(key, {"body": b"x", "at": number}) for key in keys]
            await store.write([Write(Partition(BODIES, bucket), bodies)])
            await store.read([Span(Partition(BODIES, bucket), keys[0], keys[-1])])
            claims = [RowChange(key, {"delivery": None}, {"delivery": 1}) for key in keys]
            (outcome,) = await store.change([Change(Partition(STATES, bucket), claims, {"final": None})])
            if isinstance(outcome, Applied):
                acks = [RowChange(key, {"delivery": 1}, {"settled": 1}) for key in keys]
                await store.change([Change(Partition(STATES, bucket), acks)])
        except StoreError:
            await process.sleep(10)


async def _hand_over(process: Process) -> None:
    for _ in range(ROUNDS * 10):
        await process.sleep(1)


def _measure(name: str, build: Callable[[int], World], seeds: int) -> str:
    steps = calls = faults = 0
    seconds = 0.0
    for seed in range(seeds):
        world = build(seed)
        began = perf_counter()
        world.run_for_ms(600_000)
        seconds += perf_counter() - began
        steps += world.steps
        calls += sum(process.store.calls for process in world.processes.values())
        faults += sum(world.faults.counts.values())
    return (
        f"{name}: {steps} steps and {calls} store calls of {seeds} seeds in {seconds:.2f} s, {faults} faults: "
        f"{steps / seconds:,.0f} steps/s, {calls / seconds:,.0f} calls/s"
    )


def _bare(seed: int) -> World:
    world = World(seed, NO_FAULTS)
    for number in range(SERVERS):
        process = world.start(f"server-{number}")
        for _ in range(WORKERS):
            process.spawn(_hand_over(process))
    return world


def _stored(seed: int, calm: bool, rows: int) -> World:
    world = World(seed, NO_FAULTS if calm else None)

    def boot(process: Process) -> None:
        for worker in range(WORKERS):
            process.spawn(_work(process, worker, rows))

    for number in range(SERVERS):
        world.start(f"server-{number}", boot)
    if not calm:
        Nemesis(world, list(world.processes)).start()
    return world


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    for line in (
        _measure("scheduler alone", _bare, seeds),
        _measure("store calls of one row", lambda seed: _stored(seed, True, 1), seeds),
        _measure("store calls of ten rows", lambda seed: _stored(seed, True, 10), seeds),
        _measure("the same with faults", lambda seed: _stored(seed, False, 10), seeds),
    ):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
