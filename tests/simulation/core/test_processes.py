"""Crash, pause and suspension; clocks that are wrong."""

from __future__ import annotations

from angelhair.clock import Moment
from angelhair.engine.store import Row, Write
from angelhair.simulation import FaultPlan, Process, ProcessCrashed, World
from angelhair.simulation.clocks import EPOCH_US
from tests.simulation.core.helpers import PLAIN, bodies, quiet, run

EPOCH_MS = EPOCH_US // 1_000
SECOND_MS = 1_000
HOUR_MS = 3_600_000


def beat(process: Process, world: World, beats: list[int]) -> None:
    async def heart() -> None:
        while True:
            beats.append(world.now_ms)
            await process.sleep(100)

    process.spawn(heart())


# ---- crash


def test_nothing_of_a_crashed_process_runs_any_more_and_a_new_incarnation_starts_fresh() -> None:
    world = quiet()
    beats: list[tuple[int, int]] = []

    def boot(process: Process) -> None:
        async def heart() -> None:
            while True:
                beats.append((process.incarnation, world.now_ms))
                await process.sleep(100)

        process.spawn(heart())

    first = world.start("server", boot)
    world.run_for_ms(250)
    world.crash("server")
    world.run_for_ms(1_000)
    second = world.restart("server")
    world.run_for_ms(150)
    assert beats == [(1, 0), (1, 100), (1, 200), (2, 1_250), (2, 1_350)]
    assert world.processes["server"] is second
    assert first.crashed
    assert second.label == "server#2"
    assert world.faults.counts == {"crash": 1}


def test_a_crash_is_safe_whatever_the_tasks_do_in_their_finally() -> None:
    world = quiet()
    process = world.start("server")
    observer = world.start("observer")
    promise = process.promise()
    reached: list[str] = []

    async def never() -> None:
        reached.append("spawned work ran")

    async def sleeps() -> None:
        try:
            await process.sleep(1_000)
        finally:
            process.spawn(never())
            await process.sleep(1)
            reached.append("slept in finally")

    async def writes() -> None:
        try:
            await process.sleep(1_000)
        finally:
            await process.store.write([Write(PLAIN, [Row(1, {"body": "ghost"})])])
            reached.append("wrote in finally")

    async def swallows() -> None:
        try:
            await process.sleep(1_000)
        except BaseException:
            promise.set_result("x")
            raise ValueError("out of a dying task") from None

    async def waits() -> None:
        await promise
        reached.append("was woken")

    for work in (sleeps(), writes(), swallows(), waits()):
        process.spawn(work)
    world.run_for_ms(10)
    world.crash("server")
    world.run_for_ms(10_000)
    assert reached == []
    assert process.tasks == {}
    assert bodies(observer) == {}


def test_a_task_of_another_process_hears_of_the_crash() -> None:
    world = quiet()
    server, client = world.start("server"), world.start("client")

    async def long() -> None:
        await server.sleep(HOUR_MS)

    async def joins() -> str:
        try:
            await server.spawn(long()).ended()
        except ProcessCrashed as error:
            return str(error)
        return "finished"

    world.at_ms(5, lambda: world.crash("server"))
    assert run(client, joins()) == "server crashed"


def test_a_task_may_crash_its_own_process() -> None:
    world = quiet()
    process = world.start("server")
    reached: list[str] = []

    async def suicide() -> None:
        process.crash()
        await process.sleep(1)
        reached.append("lived on")

    async def bystander() -> None:
        await process.sleep(1)
        reached.append("lived on")

    process.spawn(bystander())
    process.spawn(suicide())
    world.run_for_ms(100)
    assert reached == []


def test_a_request_under_way_is_not_called_back_by_a_crash() -> None:
    world = quiet()
    process, observer = world.start("server"), world.start("observer")
    process.spawn(process.store.write([Write(PLAIN, [Row(1, {"body": "sent"})])]))
    while process.store.calls == 0:
        world.scheduler.step()
    world.crash("server")
    world.run_for_ms(100)
    assert bodies(observer) == {1: "sent"}


# ---- crash at the k-th store call


async def three_writes(process: Process) -> None:
    for key in (1, 2, 3):
        await process.store.write([Write(PLAIN, [Row(key, {"body": "x"})])])


def _crash_at(call: int, after_effect: bool) -> tuple[World, list[int]]:
    world = quiet()
    process, observer = world.start("server"), world.start("observer")
    process.store.crash_at_call(call, after_effect)
    process.spawn(three_writes(process))
    world.run_for_ms(1_000)
    assert process.crashed
    return world, sorted(bodies(observer))


def test_a_crash_before_the_kth_call_leaves_no_trace_of_it() -> None:
    assert [_crash_at(call, False)[1] for call in (1, 2, 3)] == [[], [1], [1, 2]]
    assert _crash_at(2, False)[0].faults.counts == {"crash before call": 1}


def test_a_crash_after_the_kth_call_leaves_its_effect() -> None:
    assert [_crash_at(call, True)[1] for call in (1, 2, 3)] == [[1], [1, 2], [1, 2, 3]]
    assert _crash_at(2, True)[0].faults.counts == {"crash after call": 1}


# ---- pause


def test_a_paused_process_makes_no_progress_while_its_clocks_go_on() -> None:
    world = quiet()
    process = world.start("server")
    beats: list[int] = []
    beat(process, world, beats)
    world.run_for_ms(250)
    before = process.clock.now()
    process.pause()
    world.run_for_ms(10 * SECOND_MS)
    assert beats == [0, 100, 200]
    process.resume()
    after = process.clock.now()
    world.run_for_ms(100)
    assert beats == [0, 100, 200, 10_250, 10_350]
    assert after.monotonic_ms - before.monotonic_ms == 10 * SECOND_MS
    assert after.wall_ms - before.wall_ms == 10 * SECOND_MS


def test_answers_wait_for_a_paused_process() -> None:
    world = quiet()
    process, observer = world.start("server"), world.start("observer")
    answered: list[int] = []

    async def writes() -> None:
        await process.store.write([Write(PLAIN, [Row(1, {"body": "x"})])])
        answered.append(world.now_ms)

    process.spawn(writes())
    while process.store.calls == 0:
        world.scheduler.step()
    process.pause()
    world.run_for_ms(5_000)
    assert bodies(observer) == {1: "x"}
    assert answered == []
    resumed_ms = world.now_ms
    process.resume()
    world.run_for_ms(1)
    assert answered == [resumed_ms]


def test_a_paused_process_can_be_crashed() -> None:
    world = quiet()
    process = world.start("server")
    beats: list[int] = []
    beat(process, world, beats)
    world.run_for_ms(50)
    process.pause()
    world.run_for_ms(500)
    world.crash("server")
    process.resume()
    world.run_for_ms(500)
    assert beats == [0]


# ---- suspension


def test_a_suspended_machine_loses_the_time_on_both_clocks_and_in_its_timers() -> None:
    world = quiet()
    process = world.start("server")
    beats: list[int] = []
    beat(process, world, beats)
    world.run_for_ms(250)
    before = process.clock.now()
    process.suspend()
    world.run_for_ms(HOUR_MS)
    assert process.clock.now() == before
    process.resume()
    assert process.clock.now() == before
    assert before.wall_ms == EPOCH_MS + 250
    world.run_for_ms(50)
    # The sleep was half over when the lid closed; the other half was still to come.
    assert beats == [0, 100, 200, HOUR_MS + 300]
    assert process.clock.now() == Moment(before.wall_ms + 50, before.monotonic_ms + 50)
    process.clock.correct()
    assert process.clock.now() == Moment(EPOCH_MS + HOUR_MS + 300, before.monotonic_ms + 50)


def test_a_sleep_that_would_end_after_the_suspension_is_prolonged_by_it() -> None:
    world = quiet()
    process = world.start("server")
    woken: list[int] = []

    async def sleeper() -> None:
        await process.sleep(10 * SECOND_MS)
        woken.append(world.now_ms)

    process.spawn(sleeper())
    world.run_for_ms(SECOND_MS)
    process.suspend()
    world.run_for_ms(2 * SECOND_MS)
    process.resume()
    world.run_for_ms(60 * SECOND_MS)
    assert woken == [12 * SECOND_MS]


# ---- clocks


def test_a_wall_clock_jumps_and_is_corrected_while_the_monotonic_one_goes_on() -> None:
    world = quiet()
    clock = world.start("server", skew_us=2_000_000).clock
    year_us = 365 * 86_400 * 1_000_000
    before = clock.now()
    assert before.wall_ms == EPOCH_MS + 2_000
    clock.jump(-year_us)
    world.run_for_ms(100)
    assert clock.now() == Moment(before.wall_ms + 100 - year_us // 1_000, before.monotonic_ms + 100)
    clock.correct()
    assert clock.now() == Moment(before.wall_ms + 100, before.monotonic_ms + 100)


def test_sleeps_follow_a_drifting_monotonic_clock() -> None:
    world = quiet()
    process = world.start("server")
    process.clock.drift_ppm = 100
    began = process.clock.now().monotonic_ms

    async def sleeper() -> int:
        await process.sleep(HOUR_MS)
        return process.clock.now().monotonic_ms - began

    assert run(process, sleeper()) == HOUR_MS
    assert world.now_us == HOUR_MS * 1_000 * 1_000_000 // 1_000_100 + 1


def test_machines_differ_in_skew_in_some_seeds_and_agree_in_others() -> None:
    spreads = []
    for seed in range(200):
        world = World(seed)
        skews = [abs(world.start(f"server-{number}").clock.skew_us) for number in range(3)]
        spreads.append(max(skews))
    assert sum(spread == 0 for spread in spreads) > 20
    assert sum(0 < spread < 1_000_000 for spread in spreads) > 20
    assert sum(1_000_000 <= spread < 60_000_000 for spread in spreads) > 20
    assert sum(spread >= 60_000_000 for spread in spreads) > 1


def test_monotonic_clocks_of_two_machines_have_nothing_to_do_with_each_other() -> None:
    world = World(1, FaultPlan())
    assert world.start("a").clock.now().monotonic_ms != world.start("b").clock.now().monotonic_ms
