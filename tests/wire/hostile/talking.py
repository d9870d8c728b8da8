"""Sends hostile requests over many connections at once, and looks at every answer."""

from __future__ import annotations

import asyncio
import json
import re
import xml.etree.ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.wire.attacked import PATIENCE_SECONDS
from tests.wire.hostile.framing import Sent

AT_ONCE = 24
SHOWN = 300

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_KIND = re.compile(rb"\r\ncontent-type: *([^\r;]*)", re.IGNORECASE)
_INSIDES = (b"Traceback", b'File "', b"angelhair.", b"object at 0x")
"""What an answer must never show."""

Answer = tuple[int, bytes, bytes]
"""Status, head and body."""


@dataclass
class Found:
    statuses: Counter[int] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)

    def look_at(self, sent: Sent, answer: Answer) -> None:
        status, head, body = answer
        self.statuses[status] += 1
        wrong = _what_is_wrong(status, head, body)
        if wrong is not None:
            answered = f"{head[:SHOWN]!r} {body[:SHOWN]!r}"
            self.complaints.append(f"{wrong}: {sent.data[:SHOWN]!r} was answered with {answered}")


def _what_is_wrong(status: int, head: bytes, body: bytes) -> str | None:
    if status >= 500:
        return "a fault of the server"
    if any(inside in body for inside in _INSIDES):
        return "it shows its insides"
    kind = _KIND.search(head)
    try:
        if kind is not None and body and kind[1].endswith(b"xml"):
            xml.etree.ElementTree.fromstring(body)
        elif kind is not None and body and b"json" in kind[1]:
            json.loads(body)
    except ValueError as error:
        return f"it is no JSON ({error})"
    except xml.etree.ElementTree.ParseError as error:
        return f"it is no XML ({error})"
    return None


async def send_all(port: int, requests: Iterable[Sent]) -> Found:
    """A whole request must be answered, on a connection that goes on if the server does not close it; whoever sends
    something else may be answered or not, but not kept waiting."""
    found = Found()
    waiting = iter(requests)
    await asyncio.gather(*(_client(port, waiting, found) for _ in range(AT_ONCE)))
    return found


async def _client(port: int, waiting: Iterator[Sent], found: Found) -> None:
    line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    for sent in waiting:
        if line is None or not sent.whole:
            await _leave(line)
            line = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = line
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                writer.write(sent.data)
                if not sent.whole:
                    writer.write_eof()
                answer = await _answer(reader, sent.data.startswith(b"HEAD "))
        except TimeoutError:
            found.complaints.append(f"no answer, and no end: {sent.data[:SHOWN]!r}")
            answer = None
        except (ConnectionError, asyncio.IncompleteReadError):
            if sent.whole:
                found.complaints.append(f"no answer: {sent.data[:SHOWN]!r}")
            answer = None
        if answer is not None:
            found.look_at(sent, answer)
        if answer is None or not sent.whole or b"\r\nconnection: close" in answer[1].lower():
            await _leave(line)
            line = None
    await _leave(line)


async def _answer(reader: asyncio.StreamReader, without_body: bool) -> Answer:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        if status != 100:
            length = _LENGTH.search(head)
            return status, head, b"" if length is None or without_body else await reader.readexactly(int(length[1]))


async def _leave(line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None) -> None:
    if line is not None:
        line[1].close()
        try:
            await line[1].wait_closed()
        except ConnectionError:
            pass
