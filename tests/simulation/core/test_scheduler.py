"""Virtual time, tasks, promises, and the ways in which a world stops."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.errors import Unavailable
from angelhair.simulation import NO_FAULTS, Process, SimulationFailure, World
from tests.simulation.core.helpers import quiet, run


def test_time_is_virtual_and_events_come_in_its_order() -> None:
    world = quiet()
    process = world.start("a")
    seen = []

    async def worker(name: str, milliseconds: int) -> None:
        await process.sleep(milliseconds)
        seen.append((name, world.now_ms))

    for name, milliseconds in (("late", 86_400_000), ("early", 5), ("middle", 70)):
        process.spawn(worker(name, milliseconds))
    world.run_for_ms(86_400_000)
    assert seen == [("early", 5), ("middle", 70), ("late", 86_400_000)]
    assert world.now_ms == 86_400_000


def test_a_leap_passes_over_time_in_which_nothing_happens() -> None:
    world = quiet()
    process = world.start("a")
    began = process.clock.now()
    seen = []

    async def worker(milliseconds: int) -> None:
        await process.sleep(milliseconds)
        seen.append(world.now_ms)

    for milliseconds in (70, 5):
        process.spawn(worker(milliseconds))
    world.run_for_ms(10)
    world.leap_ms(86_400_000)
    assert seen == [5] and world.now_ms == 86_400_010
    world.run_for_ms(100)
    assert seen == [5, 86_400_070]
    passed = process.clock.now()
    assert passed.wall_ms - began.wall_ms == passed.monotonic_ms - began.monotonic_ms == 86_400_110


def _order_of_equals(seed: int) -> tuple[int, ...]:
    world = quiet(seed)
    process = world.start("a")
    seen = []

    async def worker(number: int) -> None:
        await process.sleep(1)
        seen.append(number)

    for number in range(4):
        process.spawn(worker(number))
    world.run_for_ms(10)
    return tuple(seen)


def test_what_is_due_at_the_same_time_runs_in_an_order_drawn_by_the_seed() -> None:
    orders = {_order_of_equals(seed) for seed in range(300)}
    assert len(orders) == 24, "every order of four tasks comes up"
    assert all(_order_of_equals(seed) == _order_of_equals(seed) for seed in range(20))


def test_a_promise_gives_its_result_to_all_who_wait_and_to_who_comes_later() -> None:
    world = quiet()
    process = world.start("a")
    promise = process.runtime.promise()
    seen = []

    async def waiter() -> None:
        seen.append(await promise)

    async def setter() -> None:
        await process.sleep(3)
        assert not promise.done()
        promise.set_result("x")
        assert promise.done()

    process.runtime.spawn(waiter())
    process.runtime.spawn(waiter())
    process.runtime.spawn(setter())
    world.run_for_ms(10)
    run(process, waiter())
    assert seen == ["x", "x", "x"]
    with pytest.raises(RuntimeError, match="settled before"):
        promise.set_result("y")


def test_a_promise_raises_its_error() -> None:
    process = quiet().start("a")
    promise = process.promise()
    promise.set_exception(Unavailable("no"))

    async def waiter() -> str:
        try:
            await promise
        except Unavailable as error:
            return str(error)
        return "nothing"

    assert run(process, waiter()) == "no"


def test_a_task_can_await_another_and_takes_over_its_error() -> None:
    process = quiet().start("a")

    async def fails() -> None:
        await process.sleep(1)
        raise LookupError("inner")

    async def gives() -> int:
        return 7

    async def outer() -> tuple[int, str]:
        good, bad = process.spawn(gives()), process.spawn(fails())
        try:
            await bad.ended()
        except LookupError as error:
            return await good.ended(), str(error)
        raise AssertionError("no error came")

    assert run(process, outer()) == (7, "inner")


def test_an_error_that_nobody_awaits_stops_the_world_and_names_the_seed() -> None:
    world = World(4711, NO_FAULTS)
    process = world.start("server")

    async def broken() -> None:
        await process.sleep(1)
        raise KeyError("lost")

    process.spawn(broken())
    expected = r"seed 4711.*<server .*broken> failed and nobody awaits it: KeyError"
    with pytest.raises(SimulationFailure, match=expected) as caught:
        world.run_for_ms(10)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_of_the_awaited_task_is_raised_with_the_seed_as_a_note() -> None:
    world = World(12, NO_FAULTS)

    async def broken() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError) as caught:
        world.run_until_done(world.start("a").spawn(broken()))
    assert caught.value.__notes__ == ["in the simulation of seed 12"]


def test_a_deadlock_is_found() -> None:
    world = quiet()
    process = world.start("a")

    async def waits() -> None:
        await process.promise()

    with pytest.raises(SimulationFailure, match="deadlock"):
        world.run_until_done(process.spawn(waits()))


def test_a_livelock_is_found() -> None:
    world = World(3, NO_FAULTS, maximum_steps=1_000)
    process = world.start("a")

    async def spins() -> None:
        while True:
            await process.sleep(0)

    process.spawn(spins())
    with pytest.raises(SimulationFailure, match=r"seed 3.*livelock"):
        world.run_for_ms(1)
    assert world.steps == 1_000


def test_awaiting_what_belongs_to_another_loop_stops_the_world() -> None:
    world = quiet()
    process = world.start("a")

    class Foreign:
        def __await__(self):  # type: ignore[no-untyped-def]
            yield self

    async def lost() -> None:
        await Foreign()

    process.spawn(lost())
    with pytest.raises(SimulationFailure, match="awaits a Foreign"):
        world.run_for_ms(1)


def test_nothing_here_needs_an_event_loop() -> None:
    def inside(process: Process) -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    async def work(process: Process) -> bool:
        await process.sleep(1)
        return inside(process)

    process = quiet().start("a")
    assert run(process, work(process)) is False
