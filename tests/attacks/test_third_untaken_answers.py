"""A client that takes no answers is cut off, also when its connection is about to be closed anyway.

Naive: whatever closes a connection clears its deadline, and a buffer that never empties then holds it for ever.
"""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from angelhair import limits
from angelhair.server.http import Request, Response
from tests.wire.http.echo import serving

ASK = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("ending", ["keep-alive (control)", "close", "garbage", "half-closed"])
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_client_that_takes_no_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch, ending: str, loop: str) -> None:
    monkeypatch.setattr(limits, "HTTP_WRITE_SECONDS", 0.3)
    monkeypatch.setattr(limits, "HTTP_LINGER_SECONDS", 0.1)

    async def large(_: Request) -> Response:
        await asyncio.sleep(0.1)
        return Response(200, b"x" * 20_000_000)

    async def story() -> None:
        async with serving(large) as (server, port):
            client = socket.create_connection(("127.0.0.1", port))
            try:
                last = {"close": LAST, "garbage": b"\x00garbage\r\n\r\n"}.get(ending, ASK)
                client.sendall(ASK + last)
                if ending == "half-closed":
                    client.shutdown(socket.SHUT_WR)
                async with asyncio.timeout(30):
                    while not server.connections:
                        await asyncio.sleep(0.01)
                deadline = asyncio.get_running_loop().time() + 30
                while server.connections and asyncio.get_running_loop().time() < deadline:
                    await asyncio.sleep(0.05)
                assert not server.connections, "the connection is never cut off"
            finally:
                client.close()

    (uvloop.run if loop == "uvloop" else asyncio.run)(story())
