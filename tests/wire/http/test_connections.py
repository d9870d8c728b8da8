"""Connections that behave: keep-alive, requests sent ahead, chunks, continuation, HEAD, TLS, half-closed ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import uvloop

from angelhair.server.http import Request, Response
from tests.wire.http.echo import connected, echo, get, put, serving


def played(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        uvloop.run(test())

    return run


@played
async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with serving() as (_, port), connected(port) as client:
        for number in range(3):
            client.send(put(f"/a/{number}?x=1", b"12345"))
            answer = await client.answer()
            assert answer.status == 200
            assert answer.said["segments"] == ["a", str(number)]
            assert (answer.said["method"], answer.said["query"], answer.said["body"]) == ("PUT", "x=1", 5)
            assert answer.headers["x-request-id"] == answer.said["id"]
            assert "connection" not in answer.headers


@played
async def test_requests_sent_ahead_are_answered_in_order() -> None:
    async def later(request: Request) -> Response:
        await asyncio.sleep(0.05 if request.path == "/0" else 0)
        return await echo(request)

    async with serving(later) as (_, port), connected(port) as client:
        client.send(b"".join(put(f"/{number}", b"x" * number) for number in range(40)))
        for number in range(40):
            answer = await client.answer()
            assert (answer.said["path"], answer.said["body"]) == (f"/{number}", number)


@played
async def test_what_was_sent_before_a_bad_request_is_answered_before_the_refusal() -> None:
    async def later(request: Request) -> Response:
        await asyncio.sleep(0.05)
        return await echo(request)

    async with serving(later) as (_, port), connected(port) as client:
        client.send(get("/first") + b"NOT HTTP\r\n\r\n" + get("/never"))
        assert (await client.answer()).said["path"] == "/first"
        refusal = await client.answer()
        assert (refusal.status, refusal.said["code"]) == (400, "malformed_request")
        assert await client.closed()


@played
async def test_a_request_may_come_byte_by_byte() -> None:
    async with serving() as (_, port), connected(port) as client:
        for byte in put("/slow", b"body"):
            client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.answer()).said["body"] == 4


@played
async def test_chunks() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(b"PUT /c HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        client.send(b"a\r\n0123456789\r\n0\r\n\r\n" + get("/next"))
        assert (await client.answer()).said["body"] == 13
        assert (await client.answer()).said["path"] == "/next"


@played
async def test_who_asks_before_sending_is_told_to_go_on() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(b"PUT /e HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert (await client.answer()).status == 100
        client.send(b"ok")
        assert (await client.answer()).said["body"] == 2


@played
async def test_head_has_the_headers_and_no_body() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(b"HEAD /h HTTP/1.1\r\nHost: test\r\n\r\n" + get("/after"))
        answer = await client.answer(head_only=True)
        assert int(answer.headers["content-length"]) > 0
        assert (await client.answer()).said["path"] == "/after"


@played
async def test_no_content_has_no_length() -> None:
    async def nothing(_: Request) -> Response:
        return Response(204, content_type=None)

    async with serving(nothing) as (_, port), connected(port) as client:
        client.send(get())
        answer = await client.answer()
        assert answer.status == 204
        assert "content-length" not in answer.headers and "content-type" not in answer.headers


@played
async def test_the_client_may_end_the_connection() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(get("/", "Connection: close"))
        answer = await client.answer()
        assert answer.headers["connection"] == "close"
        assert await client.closed()
    async with serving() as (_, port), connected(port) as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await client.answer()).status == 200
        assert await client.closed()


@played
async def test_a_client_that_has_said_all_still_gets_its_answer() -> None:
    async def later(request: Request) -> Response:
        await asyncio.sleep(0.05)
        return await echo(request)

    async with serving(later) as (_, port), connected(port) as client:
        client.send(put("/last", b"abc"))
        client.end()
        assert (await client.answer()).said["body"] == 3
        assert await client.closed()


@played
async def test_half_a_request_is_none() -> None:
    """Naive: take what came for all there is, and store half a message."""
    seen: list[Request] = []

    async def note(request: Request) -> Response:
        seen.append(request)
        return await echo(request)

    async with serving(note) as (_, port):
        for half in (
            put("/half", b"0123456789")[:-5],
            b"PUT /half HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
            b"PUT /half HTTP/1.1\r\nHost: test\r\nContent-Le",
        ):
            async with connected(port) as client:
                client.send(half)
                client.end()
                assert await client.closed()
    assert seen == []


@played
async def test_an_offer_to_upgrade_is_passed_over() -> None:
    """The HTTP client of Java offers h2c with its first request."""
    async with serving() as (_, port), connected(port) as client:
        offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAM")
        client.send(get("/java", *offer) + get("/two"))
        assert (await client.answer()).said["path"] == "/java"
        assert (await client.answer()).said["path"] == "/two"


@played
async def test_paths_are_decoded_by_segment() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(get("/queues/a%2Fb/%C3%A9?x=%2F") + get("http://proxy.test/absolute?y=1"))
        answer = await client.answer()
        assert answer.said["segments"] == ["queues", "a/b", "é"]
        assert answer.said["query"] == "x=%2F"
        assert (await client.answer()).said["segments"] == ["absolute"]


@played
async def test_request_ids_of_clients_are_kept_if_sane() -> None:
    async with serving() as (_, port), connected(port) as client:
        for given, kept in (("abc-1", True), ("x" * 129, False), ("", False)):
            client.send(get("/", f"X-Request-Id: {given}"))
            assert ((await client.answer()).said["id"] == given) == kept


@played
async def test_an_error_in_the_handler_is_one_answer_and_no_more() -> None:
    async def fail(request: Request) -> Response:
        if request.path == "/bad":
            raise RuntimeError("secret detail")
        return await echo(request)

    async with serving(fail) as (_, port), connected(port) as client:
        client.send(get("/bad"))
        answer = await client.answer()
        assert (answer.status, answer.said["code"]) == (500, "internal_error")
        assert b"secret" not in answer.body
        client.send(get("/good"))
        assert (await client.answer()).status == 200


@played
async def test_a_client_that_leaves_is_told_to_its_request_and_may_still_read_the_answer() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Response:
        request.on_leave = left.set
        begun.set()
        await left.wait()
        assert request.client_left
        return await echo(request)

    async with serving(wait) as (_, port):
        async with connected(port) as client:
            client.send(get("/half"))
            await begun.wait()
            client.end()
            assert (await client.answer()).said["path"] == "/half"
            assert await client.closed()
        left.clear()
        async with connected(port) as client:
            client.send(get("/gone"))
        async with asyncio.timeout(20):
            await left.wait()


@played
async def test_a_request_that_begins_after_its_client_left_knows_it() -> None:
    """Naive: only the one that is being handled is told."""
    left = asyncio.Event()

    async def tell(request: Request) -> Response:
        before = request.client_left
        request.on_leave = left.set
        await left.wait()
        return Response(200, json.dumps(before).encode())

    async with serving(tell) as (_, port), connected(port) as client:
        client.send(get("/first") + get("/second"))
        client.end()
        assert (await client.answer()).body == b"false"
        assert (await client.answer()).body == b"true"


@played
async def test_an_answer_that_is_ready_is_not_lost_to_the_end_of_the_questions() -> None:
    """Naive: close when there is nothing left to do, while the answer waits for the next turn of the loop."""
    async with serving() as (_, port), connected(port) as client:
        client.send(get("/first"))
        assert (await client.answer()).status == 200
        client.send(get("/last"))
        client.end()
        assert (await client.answer()).said["path"] == "/last"
        assert await client.closed()


@played
async def test_a_server_that_stops_answers_what_is_under_way() -> None:
    going = asyncio.Event()

    async def later(request: Request) -> Response:
        going.set()
        await asyncio.sleep(0.1)
        return await echo(request)

    async with serving(later) as (server, port), connected(port) as busy, connected(port) as idle:
        busy.send(get("/under-way"))
        await going.wait()
        stopping = asyncio.create_task(server.stop(10))
        answer = await busy.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await busy.closed() and await idle.closed()
        await stopping
        assert server.connections == 0


@played
async def test_a_server_that_stops_hears_out_who_is_still_sending() -> None:
    """Naive: a connection without a whole request is idle. Cut off, its client could only guess what became of it."""
    whole = put("/arriving", b"0123456789", "Expect: 100-continue")
    async with serving() as (server, port), connected(port) as sending, connected(port) as idle:
        sending.send(whole[:-5])
        assert (await sending.answer()).status == 100
        stopping = asyncio.create_task(server.stop(60))
        assert await idle.closed()
        sending.send(whole[-5:])
        answer = await sending.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await sending.closed()
        await stopping
        assert server.connections == 0
