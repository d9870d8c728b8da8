"""Where the attacks are played: a clock that a test moves, one shared memory store, and servers that can be waylaid."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, ParamSpec

from angelhair.clock import Clock, Moment
from angelhair.engine.engine import Engine
from angelhair.engine.store import Store, Table
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.identities import RandomIdentities
from angelhair.model import Ask, Delivery
from angelhair.stores.memory import MemoryStore
from tests.faults import Between

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

Hook = Callable[[Sequence[Any]], Awaitable[list[Any] | None]]
"""Sees the items of a call before the store does. It may wait, raise, or give an answer of its own in place of the
store's; None lets the call go on."""

Parameters = ParamSpec("Parameters")


def played(test: Callable[Parameters, Coroutine[Any, Any, None]]) -> Callable[Parameters, None]:
    """Runs a test that is a coroutine function, in a loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Parameters.args, **named: Parameters.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


class SteppedClock:
    """Stands still until the test moves it. Its wall time can be put wrong, its steady time never is."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000
        self.wall_error_ms = 0

    def now(self) -> Moment:
        return Moment(self.ms + self.wall_error_ms, self.ms)


class SkewedClock:
    """The clock of a server whose wall time is wrong by a fixed amount."""

    def __init__(self, right: SteppedClock, error_ms: int) -> None:
        self._right = right
        self._error_ms = error_ms

    def now(self) -> Moment:
        return Moment(self._right.ms + self._error_ms, self._right.ms)


class HookedStore(Between):
    """One server's way to the store: passes everything on, unless the hook of that verb has an answer of its own."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.hooks: dict[str, Hook] = {}

    async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
        hook = self.hooks.get(verb)
        answer = None if hook is None else await hook(items)
        return answer if answer is not None else await super()._pass(verb, items)


class Halt:
    """A hook at which a server falls asleep, each time it meets such a call, until the test wakes it for good."""

    def __init__(self, when: Callable[[Sequence[Any]], bool]) -> None:
        self._when = when
        self.reached = asyncio.Event()
        self.wake = asyncio.Event()

    async def __call__(self, items: Sequence[Any]) -> None:
        if self._when(items):
            self.reached.set()
            await self.wake.wait()


class LandsLate:
    """A hook for the first such call: its sender hears `OutcomeUnknown`, and the test lands it when it likes."""

    def __init__(self, when: Callable[[Sequence[Any]], bool]) -> None:
        self._when = when
        self.items: list[Any] = []

    async def __call__(self, items: Sequence[Any]) -> list[Any] | None:
        if self.items or not self._when(items):
            return None
        self.items = list(items)
        return [OutcomeUnknown("timed out") for _ in items]


def on(table: Table) -> Callable[[Sequence[Any]], bool]:
    """Whether a call touches the table."""
    return lambda items: any(item.partition.table is table for item in items)


def refuse(when: Callable[[Sequence[Any]], bool]) -> Hook:
    """A hook that provably does nothing with such calls."""

    async def hook(items: Sequence[Any]) -> list[Any] | None:
        return [Unavailable("no node") for _ in items] if when(items) else None

    return hook


def die(when: Callable[[Sequence[Any]], bool]) -> Hook:
    """A hook that ends its server just before such a call."""

    async def hook(items: Sequence[Any]) -> list[Any] | None:
        if when(items):
            raise asyncio.CancelledError
        return None

    return hook


def new_world() -> tuple[SteppedClock, MemoryStore]:
    clock = SteppedClock()
    return clock, MemoryStore(lambda: clock.ms)


def server(store: Store, clock: Clock) -> Engine:
    return Engine(store, RandomIdentities(), clock)


def bodies(deliveries: Iterable[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in deliveries]


async def consume(
    engine: Engine, clock: SteppedClock, queue: str = "jobs", *, steps: int = 400, step_ms: int = 100, ack: bool = True
) -> list[Delivery]:
    """Receives, acks (or not) and steps for so many rounds of so long each; what was delivered, in order."""
    received: list[Delivery] = []
    for _ in range(steps):
        (outcome,) = await engine.receive("shop", queue, [Ask(10)])
        assert isinstance(outcome, list), outcome
        received += outcome
        if ack and outcome:
            await engine.ack("shop", queue, [delivery.receipt for delivery in outcome])
        await engine.step("shop", queue)
        clock.ms += step_ms
    return received


async def receive_one(engine: Engine, queue: str = "jobs", visibility_ms: int | None = None) -> Delivery:
    ((delivery,),) = await engine.receive("shop", queue, [Ask(1, visibility_ms)])
    return delivery
