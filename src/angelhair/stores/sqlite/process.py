"""The writer in a process of its own: what a server uses.

A thread beside a busy event loop has to win the interpreter lock back after every statement, and makes the loop lose
it as often: together they took half as long again as each alone (decision 0012). Another process shares nothing with
the loop but a socket.

It ends when its server does, however that ends. When it dies itself, what was under way has an unknown outcome, and
another is started.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import logging
import socket
import sys
from collections import deque
from collections.abc import Collection, Sequence

from angelhair.engine.store import Table
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.stores.sqlite import wire
from angelhair.stores.sqlite.connection import Place
from angelhair.stores.sqlite.hosting import Future, Job, Writer, settle
from angelhair.stores.sqlite.writing import failed

_log = logging.getLogger(__name__)

_MAIN = "import sys; sys.path[:] = {path!r}; from angelhair.stores.sqlite.child import main; main()"
"""The child looks for modules where this process found them."""

ENDED = "SQLite: the writer process ended"


class WriterProcess(Writer):
    def __init__(self, place: Place, tables: Sequence[Table], version: int) -> None:
        super().__init__()
        self._opening = wire.framed(wire.encode_opening(wire.Opening(place, tables, version)))
        self._encoder = wire.CallsEncoder(tables)
        self._child: _Child | None = None
        self._starting: asyncio.Task[None] | None = None
        self._held: list[Job] = []
        """What came while no process was there to take it."""

    async def start(self) -> None:
        child = _Child()
        try:
            await child.start(self._opening)
        except BaseException:
            await child.stop()
            raise
        self._child = child
        child.ended.add_done_callback(lambda _: self._lost(child))

    async def stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._hand_over()
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._child is not None:
            await self._child.stop()

    def _carry(self, jobs: list[Job]) -> None:
        if self._child is None:
            self._held += jobs
            if self._starting is None:
                self._starting = self._loop.create_task(self._restart())
            return
        try:
            # All that may fail comes before the first of them is counted as sent: answers come in the order of calls.
            frame = wire.framed(self._encoder.encode([call for call, _ in jobs]))
        except Exception as error:  # noqa: BLE001  a value that cannot cross is its call's mistake, and no other's
            if len(jobs) == 1:
                settle([(jobs[0][1], error)])
            else:
                for job in jobs:
                    self._carry([job])
            return
        self._child.send(frame, jobs)

    def _lost(self, child: _Child) -> None:
        if self._child is child:
            self._child = None
            if not self._stopping:
                _log.error("%s; another starts", ENDED)
                self._starting = self._starting or self._loop.create_task(self._restart())

    async def _restart(self) -> None:
        try:
            await self.start()
        except Exception as error:  # noqa: BLE001  whatever it is, those who wait are told, and the next call tries again
            _log.error("SQLite: the writer process does not start: %s", error)
            held, self._held = self._held, []
            _fail(held, Unavailable(str(error)))
        finally:
            self._starting = None
        held, self._held = self._held, []
        if held:
            self._carry(held)


class _Child(asyncio.Protocol):
    """One process, from its start to its end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._opened: Future = self._loop.create_future()
        self.ended: Future = self._loop.create_future()
        self._frames = wire.Frames()
        self._under_way: deque[Job] = deque()
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, opening: bytes) -> None:
        ours, its = socket.socketpair()
        try:
            ours.setblocking(False)
            command = [sys.executable, "-c", _MAIN.format(path=sys.path), str(its.fileno())]
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, pass_fds=[its.fileno()]
            )
            transport, _ = await self._loop.create_connection(lambda: self, sock=ours)
        except BaseException:
            ours.close()
            raise
        finally:
            its.close()
        self._transport = transport
        self._transport.write(opening)
        await self._opened

    def send(self, frame: bytes, jobs: list[Job]) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            # It has just ended, and `connection_lost` is about to be called: nothing of this was sent.
            _fail(jobs, Unavailable(ENDED))
        else:
            self._under_way += jobs
            self._transport.write(frame)

    async def stop(self) -> None:
        """What was sent is done first."""
        if self._transport is not None:
            if not self._transport.is_closing():
                self._transport.write_eof()
            await asyncio.shield(self.ended)
        if self._process is not None:
            await self._process.wait()

    # --- asyncio ------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            said = wire.decode_said(frame)
            if isinstance(said, list):
                settle([(self._under_way.popleft()[1], result) for result in said])
            elif isinstance(said, wire.Line):
                logging.getLogger(said.logger).log(said.level, "%s", said.text)
            elif not self._opened.done():  # whoever opened it may have given up
                settle([(self._opened, [] if said is None else said)])

    def connection_lost(self, exception: Exception | None) -> None:
        if not self._opened.done():
            self._opened.set_exception(Unavailable(ENDED))
        lost, self._under_way = self._under_way, deque()
        _fail(lost, OutcomeUnknown(ENDED))
        self.ended.set_result(None)


def _fail(jobs: Collection[Job], error: Exception) -> None:
    answers = failed([call for call, _ in jobs], error)
    settle((future, answer) for (_, future), answer in zip(jobs, answers, strict=True))
