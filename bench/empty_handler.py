"""`python -m bench.empty_handler`: our HTTP server with a handler that does nothing; says its port and serves."""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket

import uvloop

from angelhair.server.http import HttpServer, Request, Response

ANSWER = Response(201, b'{"id":"0-0","queue":"q"}')


async def _nothing(_: Request) -> Response:
    return ANSWER


async def _main() -> None:
    numbers = itertools.count()
    server = HttpServer(_nothing, lambda: f"{next(numbers):032x}")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    await server.listen(listening)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    print(f"serves http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    await stopping.wait()
    await server.stop(1)


if __name__ == "__main__":
    uvloop.run(_main())
