"""Listening, deadlines and the graceful end of all connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate

from angelhair import limits
from angelhair.server.http.connection import Connection
from angelhair.server.http.messages import Request, Response, error_response

_log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves one handler on any number of sockets. To be made inside a running loop."""

    def __init__(
        self,
        handler: Handler,
        new_request_id: Callable[[], str],
        refused: Callable[[Response], None] = lambda _: None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.time = self.loop.time
        self.stopping = False
        self.observe_refusal = refused
        """Told of what was refused before a handler saw it."""
        self._handler = handler
        self._new_request_id = new_request_id
        self._connections: set[Connection] = set()
        self._alone = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._common = b""
        self._outgoing: list[tuple[asyncio.Transport, bytes]] = []
        self._tick()

    async def listen(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        self._servers.append(
            await self.loop.create_server(
                lambda: Connection(self), sock=listening, ssl=tls, backlog=limits.HTTP_BACKLOG,
                ssl_handshake_timeout=None if tls is None else limits.TLS_HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=None if tls is None else limits.TLS_SHUTDOWN_SECONDS,
            )
        )

    async def stop(self, grace_seconds: float) -> None:
        """No new connections; requests under way are answered, as far as they are done within the time given."""
        self.stopping = True
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.stop()
        if self._connections:
            self._alone.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await self._alone.wait()
        for connection in list(self._connections):
            connection.abort()
        self._ticking.cancel()

    # --- for connections --------------------------------------------------------------------------------------------

    def admit(self, connection: Connection) -> bool:
        self._connections.add(connection)
        return len(self._connections) <= limits.HTTP_CONNECTIONS and not self.stopping

    def forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._alone.set()

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def respond(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except Exception:  # noqa: BLE001 - one request must not end the server
            _log.exception("request %s met an error that it does not know", request.id)
            return error_response(500, "internal_error", "the server met an error that it does not know", request.id)

    def send(self, transport: asyncio.Transport, data: bytes) -> None:
        """Together with whatever else is answered in this turn of the loop: the answers of one commit come at once, and
        sent one by one each would wake its reader, which costs more than the sending."""
        if not self._outgoing:
            self.loop.call_soon(self.flush)
        self._outgoing.append((transport, data))

    def flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        for transport, data in outgoing:
            if not transport.is_closing():  # its client may have gone in the same turn
                transport.write(data)

    def request_id(self, headers: Mapping[str, str]) -> str:
        """The client's own if it has a sane one: it then finds its request in our logs."""
        given = headers.get("x-request-id", "")
        if 0 < len(given) <= limits.REQUEST_ID_LENGTH and given.isascii() and given.isprintable():
            return given
        return self._new_request_id()

    def common_headers(self) -> bytes:
        return self._common

    def _tick(self) -> None:
        """Once a second: a timer for every request of every connection would cost more than the requests."""
        self._common = f"Server: angelhair\r\nDate: {formatdate(usegmt=True)}\r\n".encode()
        now = self.time()
        for connection in list(self._connections):
            if connection.deadline is not None and connection.deadline < now:
                connection.expire()
        self._ticking = self.loop.call_later(1.0, self._tick)
