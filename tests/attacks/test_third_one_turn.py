"""Answers of one turn of the loop go to whom they belong, while some clients reset, half-close or send ahead.

Naive: a flush that goes by connection, or stops at the first transport that is closed.
"""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest
import uvloop

from angelhair.server.http import Request, Response
from tests.wire.http.echo import serving


def ask(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode()


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_answers_of_one_turn_go_to_whom_they_belong(loop: str) -> None:
    async def story() -> None:
        go = asyncio.Event()
        asked = 0
        left: list[str] = []

        async def wait(request: Request) -> Response:
            nonlocal asked
            asked += 1
            request.on_leave = lambda: left.append(request.path)
            await go.wait()
            return Response(200, request.path.encode() * 10)

        async with serving(wait) as (server, port):
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
            for number, client in enumerate(clients):
                client.setblocking(False)
                client.sendall(ask(f"/{number}") + (ask(f"/{number}/more") if number % 3 == 2 else b""))
            while asked < 40:
                await asyncio.sleep(0.01)
            for number, client in enumerate(clients):
                if number % 3 == 1:
                    client.shutdown(socket.SHUT_WR)
            while len(left) < 13:
                await asyncio.sleep(0.01)
            for number, client in enumerate(clients):
                if number % 3 == 0:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.close()  # RST, seen by the server in the very turn in which it answers
            go.set()
            running = asyncio.get_running_loop()
            for number, client in enumerate(clients):
                if number % 3 == 0:
                    continue
                found = b""
                wanted = [f"/{number}".encode() * 10] + [f"/{number}/more".encode() * 10] * (number % 3 == 2)
                async with asyncio.timeout(60):
                    while not found.endswith(wanted[-1]):
                        more = await running.sock_recv(client, 65536)
                        assert more, (number, found)
                        found += more
                bodies = [part.split(b"\r\n\r\n", 1)[1] for part in found.split(b"HTTP/1.1 200 OK\r\n")[1:]]
                assert bodies == wanted
                if number % 3 == 1:
                    assert await running.sock_recv(client, 1) == b""
            for client in clients:
                client.close()
            async with asyncio.timeout(60):
                while server.connections:
                    await asyncio.sleep(0.02)
            assert not server._outgoing

    (uvloop.run if loop == "uvloop" else asyncio.run)(story())
