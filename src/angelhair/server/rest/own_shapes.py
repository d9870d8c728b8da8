"""What this door says of itself, and how it says no."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from angelhair.server.rest.shapes import Shape


class Links(Shape):
    """What else there is."""

    queues: str
    topics: str
    cluster: str
    openapi: str
    docs: str
    live: str
    ready: str
    metrics: str


class Health(Shape):
    """How the server is."""

    status: Literal["live", "ready"]


class About(Shape):
    """What this is."""

    name: str
    version: str
    links: Links


class Error(Shape):
    """Every refusal. `field`: what is wrong in the request; `differing`: settings that the queue has otherwise."""

    code: str
    message: str
    request_id: str
    field: str | UnsetType = UNSET
    differing: list[str] | UnsetType = UNSET
