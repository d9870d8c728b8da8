"""The application: every request goes to the door that knows its path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from angelhair.server.http.messages import Request, Response, error_response


class Door(Protocol):
    """One way in. Answers what is addressed to it, and None to what is not."""

    async def handle(self, request: Request) -> Response | None: ...


class App:
    def __init__(self, doors: Sequence[Door]) -> None:
        self._doors = doors

    async def handle(self, request: Request) -> Response:
        for door in self._doors:
            response = await door.handle(request)
            if response is not None:
                return response
        return error_response(404, "not_found", f"there is nothing at {request.path}; see /docs", request.id)
