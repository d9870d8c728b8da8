"""Runs coroutines in virtual time, in an order that follows from the seed alone.

Everything that happens is an event on one heap, at a microsecond of virtual time. Events of the same microsecond run
in an order drawn at random, so that each seed sees other interleavings and the same seed always the same one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from angelhair.simulation.process import Process

MICROSECONDS_PER_MILLISECOND = 1_000
MICROSECONDS_PER_SECOND = 1_000_000

MAXIMUM_STEPS = 20_000_000
"""Steps of one world before it counts as a livelock: a hundred times what a long seed needs."""

TIE_BITS = 16
"""Random bits that order events of one microsecond; a tie of these as well is settled by the order of arrival."""

TASKS_NAMED_IN_A_FAILURE = 20
"""How many waiting tasks a deadlock's message lists: enough to see who waits for whom, short enough to read."""

Action = Callable[[Any], object]
Work = Coroutine[Any, Any, Any]


class SimulationFailure(Exception):
    """The world stopped because something in it is wrong; the message names the seed."""


class ProcessCrashed(Exception):
    """What a task of another process gets when it awaits a task whose process crashes."""


class Crashed(GeneratorExit):
    """Raised inside code of a crashed process that still tries to wait, e.g. in a `finally`.

    It derives from GeneratorExit so that `except Exception` does not see it and `coroutine.close()` accepts it.
    """


class SimulatedPromise:
    """A result that comes later; belongs to a process and dies with it. Implements `batching.runtime.Promise`."""

    __slots__ = ("_done", "_process", "_waiters", "error", "result")

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiters: list[Task] = []
        self._done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, result: Any, /) -> None:
        self._settle(result, None)

    def set_exception(self, error: BaseException, /) -> None:
        self._settle(None, error)

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self._done:
            raise RuntimeError("the promise was settled before")
        self._done = True
        self.result = result
        self.error = error
        scheduler = self._process.scheduler
        for task in self._waiters:
            scheduler.wake(task)

    def deliver(self, result: Any) -> None:
        """As `set_result`, from an event of the scheduler: the one waiting task goes on in this very step."""
        self._done = True
        self.result = result
        scheduler = self._process.scheduler
        for task in self._waiters:
            scheduler.step_task(task)

    def __await__(self) -> Generator[SimulatedPromise, None, Any]:
        if not self._done:
            if self._process.crashed:
                raise Crashed
            yield self
        if self.error is not None:
            raise self.error
        return self.result


class Task:
    """A coroutine of a process."""

    __slots__ = ("coroutine", "error", "finished", "name", "number", "observed", "process", "result", "send", "waiters")

    def __init__(self, process: Process, coroutine: Work, number: int, name: str) -> None:
        self.process = process
        self.coroutine = coroutine
        self.send = coroutine.send
        self.number = number
        self.name = name
        self.finished = False
        self.observed = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.waiters: list[SimulatedPromise] = []

    def done(self) -> bool:
        return self.finished

    def __repr__(self) -> str:
        return f"<{self.process.label} {self.name}>"

    def ended(self) -> SimulatedPromise:
        """Awaited by another task: gives this one's result or raises its error, which then stops the world no more."""
        running = self.process.scheduler.running
        assert running is not None, "only a task can await another one"
        promise = SimulatedPromise(running.process)
        if self.finished:
            promise._settle(self.result, self.error)
        else:
            self.waiters.append(promise)
        return promise

    def finish(self, result: Any, error: BaseException | None) -> None:
        self.finished = True
        self.result = result
        self.error = error
        for promise in self.waiters:
            if not promise._process.crashed:
                promise._settle(result, error)


class Scheduler:
    """The heap of events and the loop over it."""

    __slots__ = ("_heap", "_sequence", "_tie", "maximum_steps", "now_us", "random", "running", "seed", "steps",
                 "tasks_started")

    def __init__(self, seed: int, maximum_steps: int = MAXIMUM_STEPS) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now_us = 0
        self.steps = 0
        self.maximum_steps = maximum_steps
        self.running: Task | None = None
        self.tasks_started = 0
        self._heap: list[tuple[int, int, Action, Any]] = []
        self._sequence = 0
        self._tie = self.random.getrandbits

    # ---- events

    def at(self, time_us: int, action: Action, argument: Any) -> None:
        """Runs `action(argument)` at that time, or now if it has passed."""
        if time_us < self.now_us:
            time_us = self.now_us
        self._sequence = sequence = self._sequence + 1
        heappush(self._heap, ((time_us << TIE_BITS) | self._tie(TIE_BITS), sequence, action, argument))

    def after(self, delay_us: int, action: Action, argument: Any) -> None:
        self._sequence = sequence = self._sequence + 1
        heappush(
            self._heap, (((self.now_us + delay_us) << TIE_BITS) | self._tie(TIE_BITS), sequence, action, argument)
        )

    def wake(self, task: Task) -> None:
        """Lets a task go on at this instant, after or before whatever else is due at it."""
        self._sequence = sequence = self._sequence + 1
        heappush(self._heap, ((self.now_us << TIE_BITS) | self._tie(TIE_BITS), sequence, self.step_task, task))

    def leap(self, by_us: int) -> None:
        """So much time passes in which nothing happens: all that is to come comes that much later."""
        self.now_us += by_us
        shift = by_us << TIE_BITS
        # In place and in the same order: it stays a heap.
        self._heap[:] = [(key + shift, sequence, action, argument) for key, sequence, action, argument in self._heap]

    def idle(self) -> bool:
        return not self._heap

    def next_event_us(self) -> int | None:
        return self._heap[0][0] >> TIE_BITS if self._heap else None

    # ---- tasks

    def spawn(self, process: Process, coroutine: Work, name: str | None = None) -> Task:
        self.tasks_started = number = self.tasks_started + 1
        task = Task(process, coroutine, number, name or str(getattr(coroutine, "__qualname__", "task")))
        if process.crashed:
            # Only a `finally` of a crashing task can come here: what it starts has to vanish with it.
            coroutine.close()
            task.finished = True
            return task
        process.tasks[number] = task
        self.wake(task)
        return task

    def step_task(self, task: Task) -> None:
        """Runs a task up to its next wait."""
        process = task.process
        if process.halted:
            process.hold(task)
            return
        before, self.running = self.running, task
        try:
            promise = task.send(None)
            promise._waiters.append(task)
        except StopIteration as stop:
            if not process.crashed:
                del process.tasks[task.number]
                task.finish(stop.value, None)
        except Crashed:
            if not process.crashed:
                raise self.failure(f"{task} raised Crashed without a crash") from None
        except Exception as error:  # noqa: BLE001 - whatever a task raises is its own or stops the world
            if process.crashed:
                return
            self._task_failed(task, error)
        else:
            if process.crashed:
                # The task crashed its own process and then waited.
                task.coroutine.close()
        finally:
            self.running = before

    def _task_failed(self, task: Task, error: Exception) -> None:
        if isinstance(error, SimulationFailure):
            raise error
        if isinstance(error, AttributeError) and error.name == "_waiters":
            raise self.failure(f"{task} awaits a {type(error.obj).__name__}, which nothing here drives") from error
        del task.process.tasks[task.number]
        if not task.waiters and not task.observed:
            raise self.failure(f"{task} failed and nobody awaits it: {type(error).__name__}: {error}") from error
        task.finish(None, error)

    # ---- the loop

    def step(self) -> bool:
        """Runs one event; False when there is none."""
        if not self._heap:
            return False
        key, _, action, argument = heappop(self._heap)
        self.now_us = key >> TIE_BITS
        self.steps += 1
        action(argument)
        return True

    def run_until_us(self, end_us: int) -> None:
        """Runs every event up to and including that time; virtual time then stands there."""
        heap = self._heap
        last_key = ((end_us + 1) << TIE_BITS) - 1
        while heap and heap[0][0] <= last_key:
            key, _, action, argument = heappop(heap)
            self.now_us = key >> TIE_BITS
            self.steps += 1
            action(argument)
            if self.steps >= self.maximum_steps:
                raise self._livelock()
        if self.now_us < end_us:
            self.now_us = end_us

    def run_until_done(self, awaited: Task | SimulatedPromise) -> Any:
        """Runs until a task or promise is done; gives its result or raises its error."""
        heap = self._heap
        if isinstance(awaited, Task):
            awaited.observed = True
        while heap and not awaited.done():
            key, _, action, argument = heappop(heap)
            self.now_us = key >> TIE_BITS
            self.steps += 1
            action(argument)
            if self.steps >= self.maximum_steps:
                raise self._livelock()
        if not awaited.done():
            raise self.failure(f"deadlock: nothing can happen any more, and {awaited!r} is not done")
        if awaited.error is not None:
            awaited.error.add_note(f"in the simulation of seed {self.seed}")
            raise awaited.error
        return awaited.result

    # ---- failures

    def failure(self, message: str) -> SimulationFailure:
        return SimulationFailure(f"seed {self.seed}, at {self.now_us / MICROSECONDS_PER_SECOND:.6f} s: {message}")

    def _livelock(self) -> SimulationFailure:
        waiting = [argument for _, _, action, argument in self._heap if action == self.step_task]
        return self.failure(
            f"livelock: {self.steps} steps taken; about to run: "
            f"{', '.join(map(repr, waiting[:TASKS_NAMED_IN_A_FAILURE])) or 'no task'}"
        )
