"""An HTTP endpoint on the loopback address that remembers what it was sent, and answers as it is told."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PATIENCE_SECONDS = 30.0


class Sent(NamedTuple):
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: str

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Listener:
    def __init__(self, url: str) -> None:
        self.url = url
        self.sent: queue.Queue[Sent] = queue.Queue()
        self.answers: queue.Queue[tuple[int, dict[str, str]]] = queue.Queue()
        """For the next requests; when there are none left it is 200."""

    def next(self) -> Sent:
        return self.sent.get(timeout=PATIENCE_SECONDS)

    def answer(self, *statuses: int, **headers: str) -> None:
        for status in statuses:
            self.answers.put((status, headers))


@contextmanager
def listening() -> Iterator[Listener]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            listener.sent.put(Sent(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            try:
                status, headers = listener.answers.get_nowait()
            except queue.Empty:
                status, headers = 200, {}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    listener = Listener(f"http://127.0.0.1:{server.server_address[1]}/inbox?from=topic")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield listener
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
