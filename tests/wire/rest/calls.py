"""Short ways to say what tests of the REST door say often."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.wire.server import PATIENCE_SECONDS, RunningServer


@dataclass
class Rest:
    """One queue, seen from outside."""

    client: httpx.Client
    server: RunningServer
    name: str

    @property
    def path(self) -> str:
        return f"/queues/{self.name}"

    def call(self, method: str, rest: str = "", **options: Any) -> httpx.Response:
        return self.client.request(method, self.path + rest, **options)

    def put(self, body: bytes | str = b"-", **options: Any) -> str:
        """Puts a message that must be confirmed; its id."""
        answer = self.call("PUT", "/message", content=body, **options)
        assert answer.status_code == 201, answer.text
        assert answer.json().keys() == {"id", "queue"}
        identifier = answer.json()["id"]
        assert isinstance(identifier, str)
        return identifier

    def receive(self, batch: int = 1, **parameters: Any) -> list[dict[str, Any]]:
        answer = self.call("GET", f"/messages/{batch}", params=parameters)
        assert answer.status_code == 200, answer.text
        messages = answer.json()["messages"]
        assert isinstance(messages, list)
        return messages

    def ack(self, receipt: str) -> httpx.Response:
        return self.call("DELETE", f"/message/{receipt}")

    def show(self) -> dict[str, Any]:
        answer = self.call("GET")
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        assert isinstance(shown, dict)
        return shown


def in_time() -> Iterator[None]:
    """For loops that work towards something that must come: one that lasts too long is a failure."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        yield
    raise AssertionError("it never came")


def spoken(server: RunningServer, request: bytes) -> httpx.Response:
    """The answer to bytes that no client library would send."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), PATIENCE_SECONDS) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = [tuple(line.split(": ", 1)) for line in lines]
    return httpx.Response(int(status.split()[1]), headers=headers, content=body)


def refused(
    answer: httpx.Response, status: int, code: str, field: str | None = None, differing: list[str] | None = None
) -> str:
    """Checks that this is a refusal of this kind, in the one shape that refusals have; its message."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    said: Mapping[str, str] = answer.json()
    beyond = {name for name, value in (("field", field), ("differing", differing)) if value is not None}
    assert said.keys() == {"code", "message", "request_id"} | beyond
    assert said["code"] == code
    assert (said.get("field"), said.get("differing")) == (field, differing)
    assert said["message"]
    assert said["request_id"] == answer.headers["x-request-id"]
    return said["message"]
