"""The client without input and output: a verb is a plan, and a plan says what to do next.

A plan is a generator. It yields steps and is sent what came of each; its return value is the verb's. It never sends,
sleeps or looks at a socket, so one plan serves the blocking driver and the one on asyncio, and a test with neither.

    Send       one request; comes back as an `Answer`, or as `Broken` when there was none
    Pause      some time; nothing comes back
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from angelhair.errors import AngelhairError

T = TypeVar("T")


class Request(NamedTuple):
    method: str
    path: str
    """Percent-encoded, below the server's address."""
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str | None = None


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    """Found by any spelling of their names."""
    body: bytes


class Broken(NamedTuple):
    """There was no answer."""

    reason: str
    sent: bool
    """Whether any part of the request may have left: if not, it provably did not happen."""
    for_good: bool = False
    """Nothing was sent, and trying again would end no better."""


class Send(NamedTuple):
    request: Request
    timeout_seconds: float
    wait_seconds: float = 0.0
    """How much longer the answer may take than anything else, because the server was asked to wait."""


class Pause(NamedTuple):
    seconds: float


Step = Send | Pause
Plan = Generator[Any, Any, T]
"""Yields a `Step` (a consumer's plans have further ones) and is sent its outcome."""


class Repeat(Enum):
    """What trying again means, when it is not known whether the first try happened."""

    READS = "changes nothing: it can only be unavailable"
    SAFE = "twice is as good as once"
    UNSAFE = "twice is one too many"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, how to read a good answer, and what may be done when there is no clear one."""

    request: Request
    read: Callable[[Answer], T]
    repeat: Repeat
    wait_seconds: float = 0.0
    """How long the server was asked to wait before it answers."""
    queue: str = ""
    topic: str = ""
    """For errors."""
    done_if: tuple[type[AngelhairError], ...] = field(default=())
    """What a second try is told when it was the first that did it: a deleted queue is not found."""


def nothing(_: Answer) -> None:
    """Reads an answer that says no more than yes."""
