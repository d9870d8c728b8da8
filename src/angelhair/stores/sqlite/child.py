"""The writer process: what it does from its first frame to the end of its input. Started by `process.py`."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Iterator

from angelhair.clock import SystemClock
from angelhair.errors import AngelhairError
from angelhair.stores.sqlite import wire
from angelhair.stores.sqlite.transactions import Call
from angelhair.stores.sqlite.writing import GROUP_ROWS, Writing

RECEIVE_BYTES = 1 << 20
"""Read at once: as much as some groups of calls hold."""


def main() -> None:
    # A terminal's Ctrl-C and a supervisor's SIGTERM reach this process too; it ends when its server does, by the end of
    # its input, once everything that was handed over is done.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[-1])) as server:
        _write_for(server)


def _write_for(server: socket.socket) -> None:
    arriving = _Arriving(server)
    opening = wire.decode_opening(arriving.first())
    logging.basicConfig(level=logging.INFO, handlers=[_Telling(server)])
    writing = Writing(*opening, SystemClock())
    try:
        writing.open()
    except AngelhairError as error:
        server.sendall(wire.framed(wire.encode_opened(error)))
        return
    server.sendall(wire.framed(wire.encode_opened(None)))
    decoder = wire.CallsDecoder(opening.tables)
    for payloads in arriving.groups():
        calls: list[Call] = []
        for payload in payloads:
            calls += decoder.decode(payload)
            if sum(call.rows for call in calls) >= GROUP_ROWS:
                _answer(server, writing, calls)
                calls = []
        if calls:
            _answer(server, writing, calls)
        # Only now: nobody waits for a checkpoint but those who come during it.
        writing.checkpoint()
    writing.close()


def _answer(server: socket.socket, writing: Writing, calls: list[Call]) -> None:
    try:
        server.sendall(wire.framed(wire.encode_answers(writing.answer(calls))))
    except (BrokenPipeError, ConnectionResetError):
        # The server is gone. What it had handed over is still done: it may have been promised to somebody.
        logging.getLogger(__name__).debug("nobody is left to be told")


class _Arriving:
    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._frames = wire.Frames()
        self._whole: list[bytes] = []

    def first(self) -> bytes:
        while not self._whole:
            if not self._more():
                sys.exit(1)
        return self._whole.pop(0)

    def groups(self) -> Iterator[list[bytes]]:
        """All that has come, whenever something has."""
        while self._whole or self._more():
            if self._whole:
                payloads, self._whole = self._whole, []
                yield payloads

    def _more(self) -> bool:
        try:
            data = self._server.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            return False
        self._whole += self._frames.feed(data)
        return bool(data)


class _Telling(logging.Handler):
    """Lines go to the server, which knows where its logs go and in which form."""

    def __init__(self, server: socket.socket) -> None:
        super().__init__()
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = wire.Line(record.levelno, record.name, self.format(record))
            self._server.sendall(wire.framed(wire.encode_line(line)))
        except OSError:
            self.handleError(record)
