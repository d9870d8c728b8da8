"""A seeded world: processes with clocks around one shared store, with the faults that the seed brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from angelhair.simulation.clocks import SimulatedClock
from angelhair.simulation.cluster import Cluster
from angelhair.simulation.faults import CRASH, FaultPlan, Faults
from angelhair.simulation.process import Process
from angelhair.simulation.scheduler import (
    MAXIMUM_STEPS,
    MICROSECONDS_PER_MILLISECOND,
    Scheduler,
    SimulatedPromise,
    Task,
)
from angelhair.simulation.store import SimulatedStore
from angelhair.simulation.trace import Sink, Trace

REBOOT_SHARE = 0.3
"""Share of the restarts that restart the machine, or move to another one: its clocks then begin anew."""

Boot = Callable[[Process], None]


class World:
    """Everything that a seed determines. Nothing in it reads a clock, a file or another source of randomness."""

    def __init__(
        self,
        seed: int,
        plan: FaultPlan | None = None,
        trace: Sink | None = None,
        maximum_steps: int = MAXIMUM_STEPS,
    ) -> None:
        """Without a plan, the seed draws one. With a trace, every line of it goes there."""
        self.seed = seed
        self.scheduler = Scheduler(seed, maximum_steps)
        self.random = self.scheduler.random
        self.plan = FaultPlan.draw(self.random).met_on_one(self.random) if plan is None else plan
        self.trace = None if trace is None else Trace(self.scheduler, trace)
        self.faults = Faults(self.plan, self.random)
        self.cluster = Cluster(self.scheduler, self.faults, self.trace)
        self.processes: dict[str, Process] = {}
        """The latest incarnation of every process, by name."""
        self.identities = SimulatedIdentities(self)
        self._boots: dict[str, Boot | None] = {}
        self._calmed = False
        self._clocks: list[SimulatedClock] = []

    # ---- processes

    def start(self, name: str, boot: Boot | None = None, skew_us: int | None = None) -> Process:
        """Starts a process and lets `boot` set it up; every later incarnation is set up by the same `boot`."""
        if name in self.processes:
            raise ValueError(f"there is a process {name!r} already; restart it")
        self._boots[name] = boot
        return self._start(name, self._new_clock(skew_us), 1)

    def restart(self, name: str) -> Process:
        """A new incarnation of a crashed process; one that is still alive is crashed first."""
        old = self.processes[name]
        if not old.crashed:
            self.crash(name)
        clock = self._new_clock(None) if self.random.random() < REBOOT_SHARE else old.clock
        return self._start(name, clock, old.incarnation + 1)

    def _new_clock(self, skew_us: int | None) -> SimulatedClock:
        drawn_us = 0 if self._calmed else self.plan.draw_skew_us(self.random)
        clock = SimulatedClock(
            self.scheduler, drawn_us if skew_us is None else skew_us, self.plan.draw_drift_ppm(self.random)
        )
        self._clocks.append(clock)
        return clock

    def _start(self, name: str, clock: SimulatedClock, incarnation: int) -> Process:
        process = Process(self.scheduler, name, clock, incarnation)
        process.store = SimulatedStore(process, self.cluster)
        self.processes[name] = process
        self.note(process, f"starts, wall clock off by {clock.skew_us / MICROSECONDS_PER_MILLISECOND} ms")
        boot = self._boots[name]
        if boot is not None:
            boot(process)
        return process

    def crash(self, name: str) -> None:
        """Crashes a process now, and counts it as a fault."""
        process = self.processes[name]
        if not process.crashed:
            self.faults.count(CRASH)
            self.note(process, "crashes")
            process.crash()

    # ---- time

    @property
    def now_us(self) -> int:
        return self.scheduler.now_us

    @property
    def now_ms(self) -> int:
        """True time since the world began."""
        return self.scheduler.now_us // MICROSECONDS_PER_MILLISECOND

    @property
    def steps(self) -> int:
        return self.scheduler.steps

    @property
    def worst_skew_us(self) -> int:
        """How far any machine's wall clock ever was from true time."""
        return max((clock.worst_skew_us for clock in self._clocks), default=0)

    def run_for_ms(self, milliseconds: float) -> None:
        """Lets that much virtual time pass."""
        self.scheduler.run_until_us(self.scheduler.now_us + int(milliseconds * MICROSECONDS_PER_MILLISECOND))

    def leap_ms(self, milliseconds: int) -> None:
        """Lets that much virtual time pass in an instant, years if need be: the whole world stands still meanwhile, but
        for its clocks and what the store lets expire."""
        self.scheduler.leap(milliseconds * MICROSECONDS_PER_MILLISECOND)
        if self.trace is not None:
            self.trace.event("world", f"leaps over {milliseconds / 1_000:.3f} s")

    def run_until_done(self, awaited: Task | SimulatedPromise) -> Any:
        """Runs until a task or promise is done; gives its result or raises its error."""
        return self.scheduler.run_until_done(awaited)

    def at_ms(self, milliseconds: float, action: Callable[[], object]) -> None:
        """Does something to the world at that true time; for scripts of single tests."""
        self.scheduler.at(int(milliseconds * MICROSECONDS_PER_MILLISECOND), lambda _: action(), None)

    # ---- faults

    def calm(self, flush: bool = False) -> None:
        """The end of all faults: the store is up, nobody is cut off, halted or dead, every wall clock is right.

        What is still on its way lands when it would have, or, with `flush`, now. A nemesis must be stopped before.
        """
        self.faults.calm()
        self._calmed = True
        self.cluster.outage = False
        for name in list(self.processes):
            process = self.restart(name) if self.processes[name].crashed else self.processes[name]
            process.cut = None
            process.store.forget_crash()
            process.resume()
            process.clock.mend()
        if flush:
            self.cluster.flush()
        if self.trace is not None:
            self.trace.event("world", "calm")

    def close(self) -> None:
        """The end: every task is closed, in order, and not whenever Python happens to collect it."""
        for process in self.processes.values():
            process.crash()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def note(self, process: Process, what: str) -> None:
        """A line in the trace."""
        if self.trace is not None:
            self.trace.event(process.label, what)


class SimulatedIdentities:
    """Implements `engine.identities.Identities`: tokens that never repeat, the same ones for the same seed."""

    def __init__(self, world: World) -> None:
        self._random = world.random
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"{self._random.getrandbits(64):016x}{self._number:016x}"

    def secret(self) -> bytes:
        return self._random.randbytes(16)
