"""Short ways to say what tests of fifo queues say often."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from angelhair.errors import AngelhairError
from angelhair.model import Delivery, MessageId, NewMessage
from tests.queues import Server, succeeded

QUEUE = "orders"


async def make(server: Server, name: str = QUEUE, **settings: Any) -> None:
    await server.create(name, **{"kind": "fifo", **settings})


def message(body: str, group: str = "g", key: str | None = None, **fields: Any) -> NewMessage:
    """Its key is its body, unless it is given one."""
    return NewMessage(body.encode(), key=key or body, group=group, **fields)


async def put(server: Server, *bodies: str, group: str = "g", name: str = QUEUE) -> list[int]:
    """Puts messages that must be confirmed; their numbers."""
    outcomes = await server.put_outcomes(name, [message(body, group) for body in bodies])
    return [succeeded(outcome).number for outcome in outcomes]


async def put_one(server: Server, body: str, group: str = "g", key: str | None = None) -> MessageId | AngelhairError:
    (outcome,) = await server.put_outcomes(QUEUE, [message(body, group, key)])
    return outcome


def bodies(deliveries: Iterable[Delivery]) -> list[str]:
    return [delivery.body.decode() for delivery in deliveries]
