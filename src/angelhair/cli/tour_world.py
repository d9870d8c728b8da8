"""What the tour's steps share: two servers on one file, the time, and looks behind the scenes to check what is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import angelhair
from angelhair.cli.tour_telling import BucketPicture, Cell, Teller
from angelhair.clock import Clock, Moment, SystemClock
from angelhair.engine import places
from angelhair.engine.engine import Engine, PutOutcome, ReceiveOutcome
from angelhair.engine.store import Span, Store, Values
from angelhair.errors import AngelhairError
from angelhair.model import Ask, Delivery, MessageId

WAIT_STEP_MS = 100
"""How often a wait looks whether it is over."""

WAIT_LIMIT_MS = 60_000
"""When a wait gives up. Far beyond every time-out of the tour: what has not happened by then will not."""

SERVER_ANSWER_SECONDS = 60
"""How long a server in a process of its own may take to start and answer on a busy machine."""


class NotAsTold(Exception):
    """Something that the tour tells did not happen."""


def expect(holds: bool, told: str) -> None:
    if not holds:
        raise NotAsTold(told)


class ShiftedClock:
    """The machine's clock, put forward. Wall and monotonic time move together."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms
        self._system = SystemClock()

    def now(self) -> Moment:
        moment = self._system.now()
        return Moment(moment.wall_ms + self.ahead_ms, moment.monotonic_ms + self.ahead_ms)


class TourTime(Protocol):
    """How the tour waits."""

    @property
    def clock(self) -> Clock: ...
    @property
    def ahead_ms(self) -> int: ...
    @property
    def skips(self) -> bool: ...
    async def pass_ms(self, duration_ms: int) -> None: ...
    async def pause(self) -> None: ...


class RealTime:
    """Waits as long as it says."""

    ahead_ms = 0
    skips = False

    def __init__(self, pause_seconds: float) -> None:
        self.clock = SystemClock()
        self._pause_seconds = pause_seconds

    async def pass_ms(self, duration_ms: int) -> None:
        await asyncio.sleep(duration_ms / 1000)

    async def pause(self) -> None:
        await asyncio.sleep(self._pause_seconds)


class SkippedTime:
    """Puts the clock that the engine was handed forward, in place of waiting."""

    skips = True

    def __init__(self) -> None:
        self.clock = ShiftedClock()

    @property
    def ahead_ms(self) -> int:
        return self.clock.ahead_ms

    async def pass_ms(self, duration_ms: int) -> None:
        self.clock.ahead_ms += duration_ms
        await asyncio.sleep(0)

    async def pause(self) -> None:
        await asyncio.sleep(0)


@dataclass(slots=True)
class OtherServer:
    """A server in a process of its own, which can be killed for real."""

    process: asyncio.subprocess.Process

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), SERVER_ANSWER_SECONDS)
        expect(bool(line), "the other server answers")
        found: dict[str, Any] = json.loads(line)
        return found

    async def kill(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        return await self.process.wait()


@dataclass(slots=True)
class TourWorld:
    path: Path
    store: Store
    account: str
    engine: Engine
    """The server that most of the tour happens on."""
    other: Engine
    """A second server on the same file: it knows nothing but what the store holds."""
    teller: Teller
    time: TourTime
    processes: list[OtherServer] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """What a later step has to know of an earlier one."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self.processes:
            await server.kill()

    async def start_server(self, queue: str, visibility_ms: int) -> OtherServer:
        package_root = str(Path(angelhair.__file__).parent.parent)
        search = os.pathsep.join(part for part in (package_root, os.environ.get("PYTHONPATH")) if part)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "angelhair.cli.tour_server", str(self.path), self.account, queue,
            str(visibility_ms), str(self.time.ahead_ms),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": search},
            # Ctrl-C is for the tour, which ends the other server itself.
            start_new_session=True,
        )
        server = OtherServer(process)
        self.processes.append(server)
        return server

    # --- verbs that must succeed ----------------------------------------------------------------------------------

    async def receive(self, queue: str, messages: int, visibility_ms: int | None = None) -> list[Delivery]:
        (got,) = await self.engine.receive(self.account, queue, [Ask(messages, visibility_ms)])
        return deliveries_of(got)

    async def wait_until(self, reached: Callable[[], Awaitable[bool]], told: str) -> int:
        """Waits for something that is bound to happen; returns how long it took, in milliseconds."""
        began_ms = self.time.clock.now().monotonic_ms
        while not await reached():
            waited_ms = self.time.clock.now().monotonic_ms - began_ms
            expect(waited_ms < WAIT_LIMIT_MS, told)
            await self.time.pass_ms(WAIT_STEP_MS)
        return self.time.clock.now().monotonic_ms - began_ms

    async def wait_for_message(self, queue: str, told: str) -> tuple[Delivery, int]:
        got: list[Delivery] = []

        async def arrived() -> bool:
            got.extend(await self.receive(queue, 1))
            return bool(got)

        waited_ms = await self.wait_until(arrived, told)
        return got[0], waited_ms

    # --- behind the scenes ----------------------------------------------------------------------------------------

    async def lease(self, queue: str) -> Values:
        found = await self.engine.find_queue(self.account, queue)
        (part,) = await self.store.read([Span(places.leases(found.incarnation, 0))])
        return part.rows[0].values if part.rows else {}

    async def picture(self, queue: str) -> list[BucketPicture]:
        """Every bucket of the queue's first lane, as its rows and flags have it."""
        found = await self.engine.find_queue(self.account, queue)
        marks = (await self.engine.marks(self.account, queue))[0]
        size = found.settings.bucket_size
        pictures = []
        for bucket in range(-(-marks.next_id // size)):
            states, bodies = await self.store.read(
                [Span(places.states(found.incarnation, 0, bucket)), Span(places.bodies(found.incarnation, 0, bucket))]
            )
            if bucket < marks.floor:
                state = "dropped"
            elif states.flags.get("finished") is not None:
                state = "finished"
            elif states.flags.get("final") is not None:
                state = "final"
            else:
                state = "closed" if bucket < marks.reader else "open"
            written = {row.key for row in bodies.rows}
            rows = {row.key: row.values for row in states.rows}
            ids = range(bucket * size, (bucket + 1) * size)
            cells = [self._cell(number, rows.get(number), number in written, marks.next_id) for number in ids]
            pictures.append(BucketPicture(bucket, state, cells))
        return pictures

    async def draw(self, queue: str) -> None:
        marks = (await self.engine.marks(self.account, queue))[0]
        self.teller.draw(await self.picture(queue), marks)

    def _cell(self, number: int, state: Values | None, written: bool, next_id: int) -> Cell:
        if number >= next_id:
            return Cell.FREE
        if state is not None and state.get("settled") is not None:
            return Cell.SETTLED
        if not written:
            return Cell.MISSING
        visible_at = state.get("visible_at") if state is not None else None
        hidden = isinstance(visible_at, int) and visible_at > self.time.clock.now().wall_ms
        return Cell.IN_FLIGHT if hidden else Cell.WAITING


def ids_of(outcomes: list[PutOutcome]) -> list[MessageId]:
    """The ids of puts that must all have succeeded."""
    for outcome in outcomes:
        if isinstance(outcome, AngelhairError):
            raise outcome
    return [outcome for outcome in outcomes if isinstance(outcome, MessageId)]


def deliveries_of(outcome: ReceiveOutcome) -> list[Delivery]:
    if isinstance(outcome, AngelhairError):
        raise outcome
    return outcome
