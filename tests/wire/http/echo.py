"""A real server on a loopback port whose handler says what it was asked; and a client that sends raw bytes."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from angelhair.server.http import HttpServer, Request, Response

PATIENCE_SECONDS = 20
"""How long a test waits for what must come."""


async def echo(request: Request) -> Response:
    said = {
        "method": request.method, "path": request.path, "query": request.query, "segments": request.segments,
        "body": len(request.body), "id": request.id, "headers": dict(request.headers),
    }
    return Response(200, json.dumps(said).encode())


@asynccontextmanager
async def serving(
    handler: Callable[[Request], Awaitable[Response]] = echo, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[HttpServer, int]]:
    numbers = itertools.count(1)
    server = HttpServer(handler, lambda: f"request-{next(numbers)}")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    await server.listen(listening, tls)
    try:
        yield server, listening.getsockname()[1]
    finally:
        await server.stop(0.2)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.body)
        return found


class Raw:
    """One connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def end(self) -> None:
        self._writer.write_eof()

    async def answer(self, *, head_only: bool = False) -> Answer:
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.split("\r\n")
            pairs = [line.partition(": ") for line in lines[1:] if line]
            headers = {name.lower(): value for name, _, value in pairs}
            length = 0 if head_only else int(headers.get("content-length", 0))
            return Answer(int(lines[0].split(" ")[1]), headers, await self._reader.readexactly(length))

    async def closed(self) -> bool:
        """Whether the server ends the connection, without another byte."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self._reader.read(1) == b""
            except ConnectionResetError:
                return True

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (ConnectionResetError, BrokenPipeError):
            pass


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Raw]:
    raw = Raw(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield raw
    finally:
        await raw.close()


def get(path: str = "/", *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: test", *headers, "", ""]).encode("latin-1")


def put(path: str, body: bytes, *headers: str) -> bytes:
    head = [f"PUT {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode("latin-1") + body
