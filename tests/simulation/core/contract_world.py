"""The simulated store under the contract suite: the scheduler itself drives the tests, so "at once" means it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from angelhair.simulation import FaultPlan, World

T = TypeVar("T")

SEED = 1
WALKS = 300
CONTENDERS = 16


@contextmanager
def simulated_world(make: Callable[..., T]) -> Iterator[T]:
    """`make` is the suite's own `World`. No faults, but tiny pages and writes that land row by row: no kindness."""
    world = World(SEED, FaultPlan(page_rows=3, instant_rows=2))
    world.cluster.joins = True
    process = world.start("contract")

    def run(test: Coroutine[Any, Any, Any]) -> Any:
        return world.run_until_done(process.spawn(test))

    async def together(coroutines: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        tasks = [process.spawn(coroutine) for coroutine in coroutines]
        for promise in [task.ended() for task in tasks]:
            await promise
        return [task.result for task in tasks]

    async def wait(seconds: float) -> None:
        await process.sleep(seconds * 1_000)

    yield make("simulated", process.store, run, together, wait, WALKS, CONTENDERS)
