"""Whatever a client could hold the server up with is bounded, and refused in the one shape that errors have."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from angelhair import limits
from angelhair.server.http import Request, Response
from tests.wire.http.echo import Raw, connected, get, put, serving


def refused(data: bytes, status: int, code: str) -> None:
    async def story() -> None:
        async with serving() as (_, port):
            async with connected(port) as client:
                client.send(data)
                await is_refused(client, status, code)
            async with connected(port) as other:
                other.send(get("/still-there"))
                assert (await other.answer()).status == 200

    uvloop.run(story())


async def is_refused(client: Raw, status: int, code: str) -> None:
    answer = await client.answer()
    assert (answer.status, answer.said["code"]) == (status, code)
    assert set(answer.said) == {"code", "message", "request_id"}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"] == answer.said["request_id"]
    assert answer.headers["connection"] == "close"
    assert await client.closed()


def test_large_headers() -> None:
    refused(get("/", "X: " + "x" * limits.HTTP_HEAD_BYTES), 431, "headers_too_large")


def test_large_headers_that_never_end() -> None:
    refused(b"GET / HTTP/1.1\r\nX: " + b"x" * (limits.HTTP_HEAD_BYTES + 1), 431, "headers_too_large")


def test_many_headers() -> None:
    refused(get("/", *(f"X-{number}: 1" for number in range(limits.HTTP_HEADERS + 1))), 431, "headers_too_large")


def test_two_hosts() -> None:
    """Whatever stands before a server may have gone by the other one."""
    refused(get("/", "Host: elsewhere"), 400, "malformed_request")


def test_a_long_url() -> None:
    refused(get("/" + "x" * limits.HTTP_URL_BYTES), 414, "url_too_long")


def test_a_body_that_is_said_to_be_large() -> None:
    data = f"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: {limits.HTTP_BODY_BYTES + 1}\r\n\r\n".encode()
    refused(data, 413, "body_too_large")


def test_a_large_body_whose_sender_asks_first() -> None:
    length = f"Content-Length: {limits.HTTP_BODY_BYTES + 1}"
    data = f"PUT / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n{length}\r\n\r\n"
    refused(data.encode(), 413, "body_too_large")


def test_chunks_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_BODY_BYTES", 10_000)
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    refused(b"PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 20, 413, "body_too_large")


def test_a_sender_that_does_not_stop_still_reads_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_BODY_BYTES", 10_000)
    refused(put("/", b"x" * 4_000_000), 413, "body_too_large")


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /%FF%FE HTTP/1.1\r\nHost: test\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: five\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: -5\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost : test\r\n\r\n",
        b"CONNECT other:80 HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: test\r\n\r\n",
    ],
)
def test_what_is_not_http(data: bytes) -> None:
    refused(data, 400, "malformed_request")


def test_an_unknown_transfer_encoding() -> None:
    data = b"PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    refused(data, 501, "not_implemented")


@pytest.mark.parametrize(
    ("limit", "data"),
    [
        ("HTTP_HEAD_SECONDS", b"GET / HTTP/1.1\r\nHos"),
        ("HTTP_BODY_SECONDS", b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nabc"),
    ],
)
def test_a_slow_request(monkeypatch: pytest.MonkeyPatch, limit: str, data: bytes) -> None:
    monkeypatch.setattr(limits, limit, 0.1)
    refused(data, 408, "request_timeout")


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_IDLE_SECONDS", 0.1)

    async def story() -> None:
        async with serving() as (server, port), connected(port) as fresh, connected(port) as used:
            used.send(get("/"))
            assert (await used.answer()).status == 200
            assert await fresh.closed() and await used.closed()
            assert server.connections == 0

    uvloop.run(story())


def test_a_waiting_request_is_no_idle_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_IDLE_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HTTP_HEAD_SECONDS", 0.1)

    async def wait(_: Request) -> Response:
        await asyncio.sleep(2.5)
        return Response(200, b"{}")

    async def story() -> None:
        async with serving(wait) as (_, port), connected(port) as client:
            client.send(get("/wait"))
            assert (await client.answer()).status == 200

    uvloop.run(story())


def test_a_client_that_takes_no_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_WRITE_SECONDS", 0.1)

    async def large(_: Request) -> Response:
        return Response(200, b"x" * 20_000_000)

    async def story() -> None:
        async with serving(large) as (server, port), connected(port) as client:
            client.send(get("/") * 3)
            async with asyncio.timeout(20):
                while not server.connections:
                    await asyncio.sleep(0.01)
                while server.connections:
                    await asyncio.sleep(0.05)

    uvloop.run(story())


def test_too_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS", 2)

    async def story() -> None:
        async with serving() as (_, port), connected(port) as one, connected(port) as two:
            for client in (one, two):
                client.send(get("/"))
                assert (await client.answer()).status == 200
            async with connected(port) as three:
                await is_refused(three, 503, "too_many_connections")
            await one.close()
            await asyncio.sleep(0.1)
            async with connected(port) as four:
                four.send(get("/"))
                assert (await four.answer()).status == 200

    uvloop.run(story())
