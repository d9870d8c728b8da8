"""A simulated process, server or client: what it runs, and how it is crashed, paused and suspended."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from angelhair.simulation.clocks import SimulatedClock
from angelhair.simulation.scheduler import (
    MICROSECONDS_PER_MILLISECOND,
    Crashed,
    ProcessCrashed,
    Scheduler,
    SimulatedPromise,
    Task,
    Work,
)

if TYPE_CHECKING:
    from angelhair.simulation.store import SimulatedStore


class Process:
    """One incarnation of a process. After a crash a new incarnation is a new object; the old one stays dead."""

    __slots__ = ("_held", "_stopped_timers", "clock", "crashed", "cut", "halted", "halts", "incarnation", "label",
                 "name", "runtime", "scheduler", "store", "tasks")

    store: SimulatedStore

    def __init__(self, scheduler: Scheduler, name: str, clock: SimulatedClock, incarnation: int = 1) -> None:
        self.scheduler = scheduler
        self.name = name
        self.incarnation = incarnation
        self.label = name if incarnation == 1 else f"{name}#{incarnation}"
        self.clock = clock
        self.runtime = SimulatedRuntime(self)
        self.tasks: dict[int, Task] = {}
        self.crashed = False
        self.halted = False
        """Crashed, paused or suspended: its tasks make no progress."""
        self.halts = 0
        """How often it was."""
        self.cut: str | None = None
        """How this process is cut off from the store: one of the CUT_ names of `faults`, or None."""
        self._held: list[Task] = []
        self._stopped_timers: list[tuple[int, SimulatedPromise]] = []

    def __repr__(self) -> str:
        return f"<process {self.label}>"

    # ---- running

    def spawn(self, coroutine: Work, name: str | None = None) -> Task:
        return self.scheduler.spawn(self, coroutine, name)

    def promise(self) -> SimulatedPromise:
        return SimulatedPromise(self)

    def sleep(self, milliseconds: float) -> SimulatedPromise:
        """Awaited by clients and workers: that long by this machine's monotonic clock."""
        promise = SimulatedPromise(self)
        if not self.crashed:
            deadline_us = self.clock.monotonic_us() + int(milliseconds * MICROSECONDS_PER_MILLISECOND)
            self._set_timer((deadline_us, promise))
        return promise

    def _set_timer(self, timer: tuple[int, SimulatedPromise]) -> None:
        self.scheduler.after(self.clock.until_monotonic_us(timer[0]), self._timer_fired, timer)

    def _timer_fired(self, timer: tuple[int, SimulatedPromise]) -> None:
        if self.crashed:
            return
        deadline_us, promise = timer
        if self.clock.suspended:
            self._stopped_timers.append(timer)
        elif self.clock.until_monotonic_us(deadline_us) > 0:
            # The machine slept through a part of the wait.
            self._set_timer(timer)
        else:
            promise.deliver(None)

    def hold(self, task: Task) -> None:
        """A task that became runnable while the process is halted waits here; after a crash it is forgotten."""
        if not self.crashed:
            self._held.append(task)

    # ---- what happens to it

    def crash(self) -> None:
        """Everything it ran vanishes where it waits. Requests that are under way are not called back."""
        if self.crashed:
            return
        self.crashed = True
        self.halted = True
        if self.clock.suspended:
            self.clock.resume()
        tasks = list(self.tasks.values())
        self.tasks.clear()
        self._held.clear()
        self._stopped_timers.clear()
        running = self.scheduler.running
        for task in tasks:
            if task is not running:
                self._vanish(task)
            if task.waiters or task.observed:
                task.finish(None, ProcessCrashed(f"{self.label} crashed"))

    @staticmethod
    def _vanish(task: Task) -> None:
        # `close` runs the task's `finally` blocks, which a real crash would not. They reach nothing outside of the
        # process: whatever they await raises Crashed, what they spawn is closed, promises wake nobody.
        # An error that such a `finally` raises is nobody's: the code that would have met it is no more.
        with suppress(Crashed, Exception):
            task.coroutine.close()

    def pause(self) -> None:
        """As SIGSTOP: no progress until `resume`, while its clocks go on. Answers that arrive wait."""
        if not self.crashed:
            self.halted = True
            self.halts += 1

    def suspend(self) -> None:
        """As a laptop's lid: no progress, and both clocks of the machine stand still."""
        if not self.crashed and not self.clock.suspended:
            self.halted = True
            self.halts += 1
            self.clock.suspend()

    def resume(self) -> None:
        if self.crashed or not self.halted:
            return
        self.halted = False
        if self.clock.suspended:
            self.clock.resume()
        timers, self._stopped_timers = self._stopped_timers, []
        for timer in timers:
            self._set_timer(timer)
        held, self._held = self._held, []
        for task in held:
            self.scheduler.wake(task)


class SimulatedRuntime:
    """Implements `batching.runtime.Runtime` for one process."""

    __slots__ = ("_process",)

    def __init__(self, process: Process) -> None:
        self._process = process

    def promise(self) -> SimulatedPromise:
        return SimulatedPromise(self._process)

    def spawn(self, work: Work) -> None:
        self._process.scheduler.spawn(self._process, work)
