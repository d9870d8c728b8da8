"""Does to servers, machines and the whole store what the plan says, at random times, and undoes it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from angelhair.simulation import faults as kinds
from angelhair.simulation.faults import log_uniform
from angelhair.simulation.process import Process
from angelhair.simulation.scheduler import MICROSECONDS_PER_MILLISECOND, MICROSECONDS_PER_SECOND
from angelhair.simulation.world import World

MINUTE_US = 60 * MICROSECONDS_PER_SECOND
HOUR_US = 60 * MINUTE_US

DOWN_US = (MICROSECONDS_PER_MILLISECOND, 2 * MINUTE_US)
"""How long a crashed server stays away: from a supervisor's restart to a person's."""
PAUSE_US = (MICROSECONDS_PER_MILLISECOND, 5 * MINUTE_US)
"""From a garbage collection to a stopped container: some pauses outlive every lease and visibility time-out."""
SUSPEND_US = (MICROSECONDS_PER_SECOND, 12 * HOUR_US)
"""A virtual machine moved or saved, a laptop closed over night."""
JUMP_US = (10 * MICROSECONDS_PER_MILLISECOND, 10 * MINUTE_US)
LEAP_US = (HOUR_US, 365 * 24 * HOUR_US)
"""How far a wall clock jumps, forward or back."""
CORRECTED_US = (MICROSECONDS_PER_MILLISECOND, 30 * MINUTE_US)
"""How long a wrong wall clock stays so."""
CUT_US = (10 * MICROSECONDS_PER_MILLISECOND, 3 * MINUTE_US)
OUTAGE_US = (10 * MICROSECONDS_PER_MILLISECOND, MINUTE_US)
CALLS_AHEAD = 30
"""A crash at a store call picks one of this many next calls: about three operations' worth."""


class Nemesis:
    """Runs until it is stopped. It never inflicts a second kind of halt on a server that is already halted."""

    def __init__(self, world: World, servers: Sequence[str]) -> None:
        """`servers` are the names of the processes that may be hurt; each was started with its `boot`."""
        self._world = world
        self._servers = list(servers)
        self._random = world.random
        self._running = False
        self._deeds: dict[str, Callable[[Process], None]] = {
            kinds.CRASH: self._crash,
            kinds.CRASH_BEFORE_CALL: self._crash_at_call,
            kinds.CRASH_AFTER_CALL: self._crash_at_call,
            kinds.PAUSE: self._pause,
            kinds.SUSPEND: self._suspend,
            kinds.CLOCK_JUMP: self._jump,
            kinds.CLOCK_LEAP: self._leap,
            kinds.CUT_OFF: self._cut,
            kinds.OUTAGE: self._outage,
        }

    def start(self) -> None:
        self._running = True
        for kind in kinds.WORLD_FAULTS:
            if self._world.plan.rates.get(kind):
                self._schedule(kind)
        self._world.cluster.crash_listener = self._crashed_at_call

    def stop(self) -> None:
        """No further deeds; what was done is undone when its time is over, or at once by `World.calm`."""
        self._running = False

    # ---- when

    def _schedule(self, kind: str) -> None:
        mean_us = MINUTE_US / self._world.plan.rates[kind]
        self._world.scheduler.after(int(self._random.uniform(0, 2 * mean_us)), self._strike, kind)

    def _strike(self, kind: str) -> None:
        if not self._running:
            return
        self._schedule(kind)
        process = self._world.processes[self._random.choice(self._servers)]
        if not process.halted:
            self._deeds[kind](process)

    def _inflict(
        self, process: Process, kind: str, what: str, bounds_us: tuple[float, float], cure: Callable[[Process], None]
    ) -> None:
        duration_us = int(log_uniform(self._random, *bounds_us))
        self._world.faults.count(kind)
        self._world.note(process, f"{what} for {duration_us / MICROSECONDS_PER_SECOND:.3f} s")
        self._world.scheduler.after(duration_us, cure, process)

    # ---- what

    def _crash(self, process: Process) -> None:
        self._inflict(process, kinds.CRASH, "crashes", DOWN_US, self._bring_back)
        process.crash()

    def _crash_at_call(self, process: Process) -> None:
        # Which of the two it is follows from the rates; the store counts it when it comes to pass.
        before = self._world.plan.rates.get(kinds.CRASH_BEFORE_CALL, 0.0)
        after = self._world.plan.rates.get(kinds.CRASH_AFTER_CALL, 0.0)
        after_effect = self._random.random() * (before + after) < after
        process.store.crash_at_call(self._random.randint(1, CALLS_AHEAD), after_effect)

    def _crashed_at_call(self, process: Process) -> None:
        self._world.scheduler.after(int(log_uniform(self._random, *DOWN_US)), self._bring_back, process)

    def _bring_back(self, process: Process) -> None:
        if self._world.processes[process.name] is process:
            self._world.restart(process.name)

    def _pause(self, process: Process) -> None:
        self._inflict(process, kinds.PAUSE, "is paused", PAUSE_US, self._resume)
        process.pause()

    def _suspend(self, process: Process) -> None:
        self._inflict(process, kinds.SUSPEND, "is suspended", SUSPEND_US, self._resume_suspended)
        process.suspend()

    def _resume(self, process: Process) -> None:
        if not process.crashed:
            self._world.note(process, "goes on")
            process.resume()

    def _resume_suspended(self, process: Process) -> None:
        self._resume(process)
        self._world.scheduler.after(int(log_uniform(self._random, *CORRECTED_US)), self._correct, process)

    def _jump(self, process: Process) -> None:
        self._move_clock(process, kinds.CLOCK_JUMP, JUMP_US)

    def _leap(self, process: Process) -> None:
        self._move_clock(process, kinds.CLOCK_LEAP, LEAP_US)

    def _move_clock(self, process: Process, kind: str, bounds_us: tuple[float, float]) -> None:
        by_us = int(log_uniform(self._random, *bounds_us)) * self._random.choice((-1, 1))
        what = f"has its wall clock moved by {by_us / MICROSECONDS_PER_SECOND:.3f} s"
        self._inflict(process, kind, what, CORRECTED_US, self._correct)
        process.clock.jump(by_us)

    def _correct(self, process: Process) -> None:
        self._world.note(process, "has its wall clock corrected")
        process.clock.correct()

    def _cut(self, process: Process) -> None:
        if process.cut is None:
            cut = self._random.choice(kinds.CUTS)
            self._inflict(process, kinds.CUT_OFF, f"is cut off from the store ({cut})", CUT_US, self._mend)
            process.cut = cut

    def _mend(self, process: Process) -> None:
        self._world.note(process, "reaches the store again")
        process.cut = None

    def _outage(self, process: Process) -> None:
        if not self._world.cluster.outage:
            self._inflict(process, kinds.OUTAGE, "sees the whole store go down", OUTAGE_US, self._up)
            self._world.cluster.outage = True

    def _up(self, process: Process) -> None:
        self._world.note(process, "sees the store come back")
        self._world.cluster.outage = False
