"""A request and a response, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

import msgspec

from angelhair.settings import ACCOUNT

JSON = "application/json"


@dataclass(slots=True)
class Request:
    method: str
    path: str
    """As it was sent, percent signs and all."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case; a name that occurs twice has its values joined with commas, and nothing else: as they are
    signed."""
    body: bytes
    id: str
    peer: str
    secure: bool
    keep_alive: bool
    segments: list[str] = field(default_factory=list)
    """The path, cut at its slashes and decoded."""
    route: str = ""
    """The template of the path, once a door has recognised it: what metrics, logs and traces call this request."""
    queue: str | None = None
    """The queue that it is about, once a door knows."""
    account: str = ACCOUNT
    """Whose key it was signed with; the default one where nobody signs."""
    key: str | None = None
    """The id of that key."""
    client_left: bool = False
    """The client has closed its side. It may still read its answer, or be gone: what is not begun is better left."""
    on_leave: Callable[[], None] | None = None
    """A handler that waits sets this, to be told when the client leaves."""


@dataclass(slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str | None = JSON
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False
    """The connection ends with this response."""


STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class _Error(msgspec.Struct, omit_defaults=True):
    code: str
    message: str
    request_id: str
    field: str | None = None


def error_response(
    status: int,
    code: str,
    message: str,
    request_id: str,
    field: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    close: bool = False,
) -> Response:
    """The one shape in which this server says no."""
    return Response(status, _encoded(_Error(code, message, request_id, field)), JSON, headers, close)


def json_response(status: int, value: object, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(status, _encoded(value), JSON, headers)


def _encoded(value: object) -> bytes:
    """With a newline at the end: a terminal shows one answer a line, and a program does not mind."""
    return msgspec.json.encode(value) + b"\n"


def decode_path(path: str) -> list[str] | None:
    """The segments of a path; None when it is not UTF-8 once decoded."""
    if "%" not in path:
        return path.split("/")[1:]
    try:
        return [unquote_to_bytes(segment).decode() for segment in path.split("/")[1:]]
    except UnicodeDecodeError:
        return None
