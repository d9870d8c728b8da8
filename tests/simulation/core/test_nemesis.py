"""What happens to servers and the store as a whole, and that the calm at the end heals it."""

from __future__ import annotations

import random

import pytest

from angelhair.errors import StoreError
from angelhair.simulation import FaultPlan, Nemesis, Process, World
from angelhair.simulation import faults as kinds
from tests.simulation.core.helpers import PLAIN, bodies, read, write

SERVERS = ("server-1", "server-2")
MINUTES_MS = 60_000


def troubled(kind: str, seed: int, minutes: int = 60) -> tuple[World, Nemesis, list[tuple[str, int]]]:
    """A world in which one thing happens often; the list tells which incarnations were set up."""
    world = World(seed, FaultPlan(rates={kind: 6.0}))
    booted: list[tuple[str, int]] = []

    def boot(process: Process) -> None:
        async def works() -> None:
            while True:
                await process.sleep(1_000)
                try:
                    await process.store.time_ms()
                except StoreError:
                    continue

        booted.append((process.name, process.incarnation))
        process.spawn(works())

    for name in SERVERS:
        world.start(name, boot)
    nemesis = Nemesis(world, SERVERS)
    nemesis.start()
    world.run_for_ms(minutes * MINUTES_MS)
    return world, nemesis, booted


@pytest.mark.parametrize("kind", kinds.WORLD_FAULTS)
def test_each_kind_strikes_and_only_it(kind: str) -> None:
    world, _, _ = troubled(kind, seed=1)
    assert set(world.faults.counts) == {kind}
    assert world.faults.counts[kind] >= 3


@pytest.mark.parametrize("kind", [kinds.CRASH, kinds.CRASH_BEFORE_CALL, kinds.CRASH_AFTER_CALL])
def test_crashed_servers_come_back_and_are_set_up_again(kind: str) -> None:
    world, nemesis, booted = troubled(kind, seed=2)
    nemesis.stop()
    world.run_for_ms(3 * MINUTES_MS)
    assert not any(process.crashed for process in world.processes.values())
    assert len(booted) == len(SERVERS) + world.faults.counts[kind]
    assert sorted(booted) == sorted(
        (name, incarnation)
        for name, process in world.processes.items()
        for incarnation in range(1, process.incarnation + 1)
    )


@pytest.mark.parametrize("kind", kinds.WORLD_FAULTS)
def test_calm_heals_everything_at_once_and_for_good(kind: str) -> None:
    for seed in range(10):
        world, nemesis, _ = troubled(kind, seed, minutes=5)
        nemesis.stop()
        world.calm(flush=True)
        before = dict(world.faults.counts)
        for _ in range(3):
            for name in SERVERS:
                process = world.processes[name]
                assert not process.halted
                assert process.clock.skew_us == 0
                assert write(process, (1, "x")) is None
                assert bodies(process) == {1: "x"}
            world.run_for_ms(10 * MINUTES_MS)
        assert world.faults.counts == before


def test_a_suspended_servers_wall_clock_stays_behind_until_it_is_corrected() -> None:
    world, nemesis, _ = troubled(kinds.SUSPEND, seed=3, minutes=1)
    behind: set[bool] = set()
    for _ in range(2_000):
        world.run_for_ms(MINUTES_MS)
        for process in world.processes.values():
            if not process.halted:
                assert process.clock.skew_us <= 0
                behind.add(process.clock.skew_us < 0)
    nemesis.stop()
    assert behind == {True, False}


def test_clocks_jump_both_ways() -> None:
    world = World(4, FaultPlan(rates={kinds.CLOCK_LEAP: 1.0}))
    process = world.start("server-1")
    Nemesis(world, ["server-1"]).start()
    signs = set()
    for _ in range(200):
        world.run_for_ms(MINUTES_MS)
        signs.add((process.clock.skew_us > 0) - (process.clock.skew_us < 0))
    assert signs == {-1, 0, 1}


def test_a_plan_refuses_a_fault_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="no such fault: flood"):
        FaultPlan(rates={"flood": 1.0})


def test_plans_vary_from_none_to_nearly_all_kinds() -> None:
    plans = [FaultPlan.draw(random.Random(seed)) for seed in range(500)]
    sizes = [len(plan.rates) for plan in plans]
    assert sizes.count(0) > 20
    assert max(sizes) > 25
    assert sum(1 <= size <= 6 for size in sizes) > 50
    for plan in plans:
        for group in (kinds.WRITE_FAULTS, kinds.CHANGE_FAULTS, kinds.DROP_FAULTS):
            assert sum(plan.rates.get(kind, 0.0) for kind in group) <= kinds.VERB_RATE_HIGHEST + 1e-9


def test_reads_of_a_world_that_was_never_written_are_empty() -> None:
    world = World(0, FaultPlan())
    assert read(world.start("a"), PLAIN).rows == []
