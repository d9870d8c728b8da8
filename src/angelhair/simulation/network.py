"""Requests from one process to another, as from a client to a server over HTTP: they may get lost, both ways."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from angelhair.errors import AngelhairError
from angelhair.simulation.faults import ANSWER_LOST, REQUEST_LOST, Faults
from angelhair.simulation.process import Process
from angelhair.simulation.scheduler import MICROSECONDS_PER_MILLISECOND, Crashed, SimulatedPromise

T = TypeVar("T")

TRAVEL_LEAST_US = 100
TRAVEL_SPREAD_US = 2_000
"""How long a message between a client and a server takes."""


class NoAnswer(Exception):
    """The server did not answer: it may have done what it was asked, may still be doing it, or may never do it."""


async def ask(
    faults: Faults, client: Process, server: Process, work: Callable[[], Coroutine[Any, Any, T]], timeout_ms: int
) -> T:
    """Runs `work()` as a task of the server and gives its result, or raises its `AngelhairError`, to the client.

    Raises `NoAnswer` when a message is lost, the server is or gets crashed, or the time is over. The work goes on
    at the server whatever becomes of the client. Any other error of the work stops the world.
    """
    request = _Request(faults, client, server, work)
    request.send(timeout_ms)
    result, error = await request.answer
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


class _Request:
    __slots__ = ("answer", "client", "faults", "loss", "scheduler", "server", "work")

    def __init__(
        self, faults: Faults, client: Process, server: Process, work: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        self.faults = faults
        self.client = client
        self.server = server
        self.work = work
        self.scheduler = client.scheduler
        self.answer: SimulatedPromise = SimulatedPromise(client)
        self.loss = faults.draw("request")

    def _travel_us(self) -> int:
        drawn = self.scheduler.random.random()
        return TRAVEL_LEAST_US + int(drawn * drawn * TRAVEL_SPREAD_US)

    def send(self, timeout_ms: int) -> None:
        self.scheduler.after(timeout_ms * MICROSECONDS_PER_MILLISECOND, self._arrive, (None, NoAnswer("timed out")))
        if self.loss != REQUEST_LOST:
            self.scheduler.after(self._travel_us(), self._begin, None)

    def _begin(self, _: None) -> None:
        if self.server.crashed:
            self._reply(None, NoAnswer("nobody listens"))
        else:
            self.server.spawn(self._serve())

    async def _serve(self) -> None:
        try:
            result = await self.work()
        except AngelhairError as error:
            self._reply(None, error)
        except (GeneratorExit, Crashed):
            # The server's machine breaks the connection. Nothing of the server runs here any more.
            self._reply(None, NoAnswer("connection lost"))
            raise
        else:
            self._reply(result, None)

    def _reply(self, result: Any, error: Exception | None) -> None:
        if self.loss != ANSWER_LOST:
            self.scheduler.after(self._travel_us(), self._arrive, (result, error))

    def _arrive(self, answer: tuple[Any, Exception | None]) -> None:
        if not self.answer.done():
            self.answer.deliver(answer)
