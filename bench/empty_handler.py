"""`python -m bench.empty_handler`: the server as it is, counting and naming its requests, with nothing behind its door;
says its port and serves. What a put costs beyond this is what putting costs."""

from __future__ import annotations

import asyncio
import signal
import socket

import uvloop

from angelhair.identities import RandomIdentities
from angelhair.server.app import App
from angelhair.server.http import HttpServer, Request, Response
from angelhair.server.observing.operations import Observing
from angelhair.server.serving import settle_down
from angelhair.settings import Settings

ANSWER = Response(201, b'{"id":"0-0","queue":"q"}')


class EmptyDoor:
    async def handle(self, request: Request) -> Response:
        request.route = "/queues/{queue}/message"
        return ANSWER


async def _main() -> None:
    observing = Observing(Settings())
    app = App([EmptyDoor()])
    server = HttpServer(observing.handler(app.handle), RandomIdentities().fresh, observing.refused)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    await server.listen(listening)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    settle_down()
    print(f"serves http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    await stopping.wait()
    await server.stop(1)
    await observing.stop()


if __name__ == "__main__":
    uvloop.run(_main())
