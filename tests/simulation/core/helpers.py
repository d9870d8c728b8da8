"""Two small tables and short ways to use them."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from angelhair.engine.store import (
    Change,
    ChangeOutcome,
    Partition,
    Row,
    RowChange,
    Slice,
    Span,
    Table,
    Write,
    WriteOutcome,
)
from angelhair.simulation import FaultPlan, Process, World

BODIES = Table("bodies", conditional=False, key=int, columns={"body": str, "size": int})
STATES = Table("states", conditional=True, key=int, columns={"count": int, "owner": str}, flags={"final": int})

PLAIN = Partition(BODIES, "p")
CONDITIONAL = Partition(STATES, "c")

HOURS_MS = 3_600_000

SEEDS = range(30)
"""Enough for each of a fault's ways to come up."""


def quiet(seed: int = 0, **traits: Any) -> World:
    """A world without faults."""
    return World(seed, FaultPlan(**traits))


def only(kind: str, seed: int = 0, rate: float = 1.0, **traits: Any) -> World:
    """A world in which one thing goes wrong."""
    return World(seed, FaultPlan(rates={kind: rate}, **traits))


def run(process: Process, work: Coroutine[Any, Any, Any]) -> Any:
    task = process.spawn(work)
    return process.scheduler.run_until_done(task)


def write(process: Process, *rows: tuple[int, str], ttl_seconds: int | None = None) -> WriteOutcome:
    item = Write(PLAIN, [Row(key, {"body": body}) for key, body in rows], ttl_seconds)
    return run(process, process.store.write([item]))[0]


def raise_count(process: Process, key: int, before: int | None, after: int) -> ChangeOutcome:
    change = Change(CONDITIONAL, [RowChange(key, {"count": before}, {"count": after})])
    return run(process, process.store.change([change]))[0]


def drop(process: Process, partition: Partition) -> WriteOutcome:
    return run(process, process.store.drop([partition]))[0]


def read(process: Process, partition: Partition, **span: Any) -> Slice:
    return run(process, process.store.read([Span(partition, **span)]))[0]


def bodies(process: Process) -> dict[int, str]:
    return {row.key: row.values["body"] for row in read(process, PLAIN).rows}


def counts(process: Process) -> dict[int, int]:
    return {row.key: row.values["count"] for row in read(process, CONDITIONAL).rows}

def heal(world: World) -> Process:
    """No further faults; what is on its way stays so. Gives a process to look at the outcome with."""
    world.faults.calm()
    return world.processes.get("observer") or world.start("observer")
