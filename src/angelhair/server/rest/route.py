"""What a route is: enough to call it, and enough to describe it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from angelhair.engine.catalog import Queue
from angelhair.server.http.messages import JSON, Request, Response
from angelhair.server.rest.query import Parameter

Handler = Callable[..., Awaitable[Response]]
"""Takes the service, the request, and the path's parameters in their order."""

ALWAYS = (
    "malformed_request", "invalid_request", "request_timeout", "body_too_large", "url_too_long", "headers_too_large",
    "internal_error", "not_implemented", "too_many_connections",
)
"""Codes that any request may be refused with."""


WITH_KEYS = ("unauthorized", "forbidden")
"""Codes that a request may be refused with where there are access keys."""

Reaches = Callable[[Request, Queue | None], list[str]]
"""Which other queues a request makes use of, that its key has to be for too."""


class RequestBody(NamedTuple):
    description: str
    shape: Any = None
    """None for bytes, of whatever content type."""
    example: object = None
    required: bool = True


class Answer(NamedTuple):
    description: str
    shape: Any = None
    example: object = None
    content_type: str = JSON
    leads_to: Mapping[str, Mapping[str, str]] = {}
    """Routes, by name, that go on from here, with what each takes from this answer: OpenAPI's links."""


DONE = Answer("Done.")

READING = ("unavailable",)
WRITING = ("unavailable", "outcome_unknown")
OF_A_QUEUE = ("queue_not_found",)
WITH_JSON = ("malformed_json", "unsupported_media_type")
"""Codes that many routes share."""


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    template: str
    handler: Handler
    name: str
    """In one word, as client generators want it."""
    group: str
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    path: Sequence[Parameter] = ()
    query: Sequence[Parameter] = ()
    body: RequestBody | None = None
    refusals: Sequence[str] = ()
    """Codes beyond those that any request may meet."""
    curl: str = ""
    """Arguments of an example's call, without the URL."""
    safe: bool = field(default=True)
    """Whether a GET takes nothing away, so that it also answers HEAD."""
    action: str | None = ""
    """What an access key has to be for, by the name of SQS's action; None is open to everybody, and a route that says
    nothing to those keys only that may do anything."""
    reaches: Reaches | None = None

    @property
    def codes(self) -> list[str]:
        return [*ALWAYS, *(() if self.action is None else WITH_KEYS), *self.refusals]
