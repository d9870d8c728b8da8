"""One connection: bytes in, requests to the handler one at a time, responses out in order.

httptools (llhttp) parses; this file decides what happens with what it finds. Everything that a client could use to
hold the server up is bounded: the head, the body, the time for each, requests sent ahead, responses not taken.

    IDLE      nothing of a next request has come          closed when it lasts too long
    HEAD      its head is coming                          408 when it takes too long, 431 or 414 when it is too large
    BODY      its body is coming                          408 when it takes too long, 413 when it is too large
    WHOLE     it is being handled                         as long as the handler takes
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools

from angelhair import limits
from angelhair.server.http.messages import STATUS_LINES, Request, Response, decode_path, error_response

if TYPE_CHECKING:
    from angelhair.server.http.listening import HttpServer

IDLE, HEAD, BODY, WHOLE = range(4)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.Protocol):
    __slots__ = (
        "_ahead", "_body", "_body_bytes", "_closing", "_current", "_head_bytes", "_headers", "_keep_alive", "_parser",
        "_paused", "_peer", "_refused", "_secure", "_server", "_state", "_task", "_transport", "_url", "deadline",
    )

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._state = IDLE
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._keep_alive = True
        self._ahead: deque[Request | Response] = deque()
        """What came while a request was being handled; a response is a refusal that waits for its turn."""
        self._task: asyncio.Task[None] | None = None
        self._current: Request | None = None
        self._refused = False
        """Nothing that still comes is looked at."""
        self._closing = False
        self._paused = False
        """The client does not take its responses: nothing more is read from it."""
        self._peer = ""
        self._secure = False
        self.deadline: float | None = None
        """When `expire` is to be called, on the loop's clock."""

    # --- asyncio ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else ""
        self._secure = transport.get_extra_info("ssl_object") is not None
        self._allow(limits.HTTP_IDLE_SECONDS)
        if not self._server.admit(self):
            self._refuse(503, "too_many_connections", "the server has as many connections as it takes")
            self._answer_refusals()

    def connection_lost(self, exception: Exception | None) -> None:
        self._server.forget(self)
        self._closing = True
        self.deadline = None
        if self._task is not None:
            # Nobody waits for the answer any more. What the store was asked to do, it does all the same.
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._state <= HEAD:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # This server stays with HTTP/1.1, as it may; what follows is the next request.
            self._parser = httptools.HttpRequestParser(self)
            rest = data[upgrade.args[0] :]
            if rest:
                self.data_received(rest)
        except httptools.HttpParserError as error:
            self._refuse(400, "malformed_request", f"this is not HTTP/1.1: {error}")
        if self._state == HEAD and self._head_bytes > limits.HTTP_HEAD_BYTES:
            self._refuse_head()
        self._answer_refusals()

    def eof_received(self) -> bool:
        if self._state in (HEAD, BODY):
            # Half a request is none: nothing of it is looked at.
            self._refused = True
            self._state = IDLE
        if self._task is None and not self._ahead:
            # An answer may still wait for its turn of the loop.
            self._server.flush()
            return False
        # It may still read the answers that it is owed; but nobody waits for what has not come yet.
        self._keep_alive = False
        self._refused = True
        if self._current is not None:
            self._current.client_left = True
            if self._current.on_leave is not None:
                self._current.on_leave()
        return not self._secure

    def pause_writing(self) -> None:
        self._transport.pause_reading()
        self._paused = True
        self.deadline = self._server.time() + limits.HTTP_WRITE_SECONDS

    def resume_writing(self) -> None:
        self._paused = False
        self._set_deadline()
        if len(self._ahead) < limits.HTTP_AHEAD:
            self._transport.resume_reading()

    # --- httptools --------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._state = HEAD
        self._url = b""
        self._headers = {}
        self._body = []
        self._body_bytes = 0
        self._allow(limits.HTTP_HEAD_SECONDS)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        text = value.rstrip(b" \t").decode("latin-1")  # the parser leaves the white space at the end, which is no part
        if key in self._headers:
            if key == "host":
                # Of two, whatever stands before this server may have gone by the other one (RFC 9112, 3.2).
                self._refuse(400, "malformed_request", "a request must have one Host header")
            text = f"{self._headers[key]},{text}"
        elif len(self._headers) >= limits.HTTP_HEADERS:
            self._refuse_head()
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        self._state = BODY
        if self._refused:
            return
        head_bytes = len(self._url) + sum(len(name) + len(value) for name, value in self._headers.items())
        self._head_bytes = 0
        headers = self._headers
        if head_bytes > limits.HTTP_HEAD_BYTES or len(self._url) > limits.HTTP_URL_BYTES:
            self._refuse_head()
        elif "host" not in headers and self._parser.get_http_version() == "1.1":
            self._refuse(400, "malformed_request", "a request of HTTP/1.1 must have a Host header")
        elif "transfer-encoding" in headers and headers["transfer-encoding"].lower() != "chunked":
            self._refuse(501, "not_implemented", "of the transfer encodings only chunked is understood")
        elif int(headers.get("content-length", "0")) > limits.HTTP_BODY_BYTES:
            self._refuse_body()
        else:
            self._allow(limits.HTTP_BODY_SECONDS)
            if headers.get("expect", "").lower() == "100-continue" and self._task is None:
                self._server.send(self._transport, CONTINUE)

    def on_body(self, chunk: bytes) -> None:
        if self._refused:
            return
        self._body_bytes += len(chunk)
        if self._body_bytes > limits.HTTP_BODY_BYTES:
            self._refuse_body()
        else:
            self._body.append(chunk)

    def on_message_complete(self) -> None:
        self._state = IDLE
        if self._refused:
            return
        path, _, query = self._url.decode("latin-1").partition("?")
        if not path.startswith("/"):
            path = _path_of_absolute(path)
        segments = decode_path(path) if path.startswith("/") else None
        if segments is None or self._parser.get_method() == b"CONNECT":
            self._refuse(400, "malformed_request", "the path is not UTF-8, percent-encoded where necessary")
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        request = Request(
            self._parser.get_method().decode("latin-1"), path, query, self._headers, body,
            self._server.request_id(self._headers), self._peer, self._secure,
            bool(self._parser.should_keep_alive()), segments,
        )
        if self._task is None:
            if not self._paused:
                self.deadline = None
            self._task = self._server.loop.create_task(self._serve(request))
        else:
            self._ahead.append(request)
            if len(self._ahead) >= limits.HTTP_AHEAD:
                self._transport.pause_reading()

    # --- requests and responses -------------------------------------------------------------------------------------

    async def _serve(self, request: Request) -> None:
        while True:
            self._current = request
            request.client_left = not self._keep_alive
            response = await self._server.respond(request)
            self._current = None
            self._write(response, request)
            last = not self._keep_alive and not self._ahead
            if response.close or not request.keep_alive or last or self._server.stopping:
                self._close()
                return
            if self._closing or not self._ahead:
                break
            following = self._ahead.popleft()
            if isinstance(following, Response):
                self._task = None
                self._end_with(following)
                return
            request = following
            if not self._paused:
                self._transport.resume_reading()
        self._task = None
        self._set_deadline()

    def _write(self, response: Response, request: Request | None) -> None:
        if self._closing:
            return
        head = [STATUS_LINES[response.status], self._server.common_headers()]
        if response.content_type is not None:
            head.append(f"Content-Type: {response.content_type}\r\n".encode())
        head.extend(f"{name}: {value}\r\n".encode("latin-1") for name, value in response.headers)
        if request is not None:
            head.append(f"X-Request-Id: {request.id}\r\n".encode("latin-1"))
        if response.close or self._server.stopping or (request is not None and not request.keep_alive):
            head.append(b"Connection: close\r\n")
        if response.status != 204:
            head.append(b"Content-Length: %d\r\n" % len(response.body))
        head.append(b"\r\n")
        if request is None or request.method != "HEAD":
            head.append(response.body)
        self._server.send(self._transport, b"".join(head))

    # --- saying no --------------------------------------------------------------------------------------------------

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answers in its turn, and ends the connection: what follows cannot be told apart from what was refused."""
        if self._refused:
            return
        self._refused = True
        request_id = self._server.request_id(self._headers)
        named = (("X-Request-Id", request_id),)
        self._ahead.append(error_response(status, code, message, request_id, headers=named, close=True))

    def _refuse_head(self) -> None:
        if len(self._url) > limits.HTTP_URL_BYTES:
            self._refuse(414, "url_too_long", f"the URL is longer than {limits.HTTP_URL_BYTES} bytes")
        else:
            self._refuse(
                431,
                "headers_too_large",
                f"more than {limits.HTTP_HEADERS} headers, or more than {limits.HTTP_HEAD_BYTES} bytes of them",
            )

    def _refuse_body(self) -> None:
        self._refuse(413, "body_too_large", f"the body is larger than {limits.HTTP_BODY_BYTES} bytes")

    def _answer_refusals(self) -> None:
        if self._refused and self._task is None and self._ahead and not self._closing:
            refusal = self._ahead.popleft()
            assert isinstance(refusal, Response)
            self._end_with(refusal)

    def _end_with(self, refusal: Response) -> None:
        """A client that is still sending would lose the answer if its connection were closed under it: so, not yet."""
        self._server.observe_refusal(refusal)
        self._write(refusal, None)
        self._server.flush()
        if self._transport.can_write_eof() and not self._closing:
            self._transport.write_eof()
        self._refused = True
        # What was refused is not kept while its sender takes its time.
        self._headers, self._url, self._body = {}, b"", []
        self._parser = cast("httptools.HttpRequestParser", None)
        self._server.loop.call_later(limits.HTTP_LINGER_SECONDS, self._close)

    # --- time -------------------------------------------------------------------------------------------------------

    def _allow(self, seconds: float) -> None:
        """So long for what comes next; as long as a request is handled nothing has to come."""
        if not self._paused:
            self.deadline = None if self._task is not None else self._server.time() + seconds

    def _set_deadline(self) -> None:
        self._allow(limits.HTTP_IDLE_SECONDS if self._state == IDLE else limits.HTTP_BODY_SECONDS)

    def expire(self) -> None:
        """The deadline has passed."""
        self.deadline = None
        if self._paused:
            self._transport.abort()
        elif self._state == IDLE or self._refused:
            self._close()
        else:
            self._refuse(408, "request_timeout", "the request took too long to arrive")
            self._answer_refusals()

    def stop(self) -> None:
        """The server stops: idle connections end now, the others with the response that is due. A request whose body is
        still arriving has one due, too: cut off, its client could not tell it from one that was done."""
        if self._task is None and (self._state != BODY or self._refused):
            self._close()

    def abort(self) -> None:
        """At once, whatever is under way."""
        self._transport.abort()

    def _close(self) -> None:
        self._closing = True
        if not self._paused:
            self.deadline = None
        self._server.flush()
        if not self._transport.is_closing():
            self._transport.close()


def _path_of_absolute(url: str) -> str:
    """The path of a URL with scheme and host, as proxies send it."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        return url
    return "/" + rest.partition("/")[2]
