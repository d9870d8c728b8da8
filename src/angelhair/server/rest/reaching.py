"""Queues that a request makes use of beside the one in its path: a key that is limited to some has to be for these."""

from __future__ import annotations

from typing import Any

import msgspec

from angelhair.engine.catalog import Queue
from angelhair.server.http.messages import Request


def dead_letter_queue_named(request: Request, _: Queue | None) -> list[str]:
    return _named(request, "dead_letter_queue")


def destination_named(request: Request, _: Queue | None) -> list[str]:
    return _named(request, "destination")


def dead_letter_queue_of(_: Request, queue: Queue | None) -> list[str]:
    target = None if queue is None else queue.settings.dead_letter_queue
    return [] if target is None else [target]


def _named(request: Request, field: str) -> list[str]:
    """What does not decode, or names none, is for the handler to refuse."""
    try:
        decoded: Any = msgspec.json.decode(request.body)
    except (ValueError, RecursionError):
        return []
    found = decoded.get(field) if isinstance(decoded, dict) else None
    return [found] if isinstance(found, str) else []
