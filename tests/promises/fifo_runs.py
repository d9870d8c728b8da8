"""Short ways to say what tests of runs into fifo queues say often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from angelhair.engine.ledger import Run, accept_all
from angelhair.engine.store import Store
from angelhair.errors import InvalidRequest
from angelhair.model import Delivery, NewMessage
from tests.faults import Between
from tests.promises.fifo import QUEUE
from tests.queues import DAY, MINUTE, SECOND, Server

WINDOW = 5 * MINUTE
SETTINGS: dict[str, Any] = {"bucket_size": 3, "visibility_timeout_ms": SECOND}
GROUPS = ("g", "h")

Accept = Callable[[set[int]], None]


def batch_of(count: int, keyed: bool = True) -> list[NewMessage]:
    """Messages of two groups in turn; every third has a key of its own, if they are to have any."""
    return [
        NewMessage(b"m%d" % number, key=f"k{number}" if keyed and number % 3 == 0 else None, group=GROUPS[number % 2])
        for number in range(count)
    ]


def run_of(batch: Sequence[NewMessage], writer: str = "task", window_ms: int = DAY, block: int = 0) -> Run:
    return Run(writer, block, len(batch), "".join(message.body.decode() for message in batch), window_ms)


async def put_run(
    server: Server, batch: Sequence[NewMessage], writer: str = "task", accept: Accept = accept_all, name: str = QUEUE,
    window_ms: int = DAY,
) -> set[int] | None:
    """Which of them have a key that was known; None when there was nothing left to do."""
    begun = await server.engine.begin_run(server.world.account, name, run_of(batch, writer, window_ms))
    return None if begun is None else await server.engine.finish_run(begun, batch, accept)


async def drained(server: Server, name: str = QUEUE) -> dict[str | None, list[bytes]]:
    """All that comes, by group, in the order in which it came."""
    found: dict[str | None, list[bytes]] = {}
    for delivery in await server.drain(name, 10):
        found.setdefault(delivery.group, []).append(delivery.body)
    return found


def as_put(batch: Sequence[NewMessage]) -> dict[str | None, list[bytes]]:
    """What must come of a batch: each message once, each group in its order."""
    groups = dict.fromkeys(message.group for message in batch)
    return {group: [message.body for message in batch if message.group == group] for group in groups}


def merged(*parts: dict[str | None, list[bytes]]) -> dict[str | None, list[bytes]]:
    found: dict[str | None, list[bytes]] = {}
    for part in parts:
        for group, bodies in part.items():
            found[group] = found.get(group, []) + bodies
    return found


def refuse(known: set[int]) -> None:
    """As `onConflict=fail` does."""
    if known:
        raise InvalidRequest("onConflict", f"{len(known)} are known")


class Killed(BaseException):
    """A process that is gone: nothing in the engine can answer it."""


class Mortal(Between):
    """A store whose user is killed at one of its calls, before it or when it is done."""

    def __init__(self, store: Store, at: int, after: bool) -> None:
        super().__init__(store)
        self.calls = 0
        self._at = at
        self._after = after

    async def _pass(self, verb: str, items: Sequence[Any]) -> list[Any]:
        self.calls += 1
        if self.calls == self._at and not self._after:
            raise Killed
        outcomes = await super()._pass(verb, items)
        if self.calls >= self._at:
            raise Killed
        return outcomes


def bodies_of(deliveries: Sequence[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in deliveries]
