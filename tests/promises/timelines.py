"""What tests of timelines do on the way."""

from __future__ import annotations

from typing import Any

from angelhair.engine import places
from angelhair.engine.store import Span, Values
from angelhair.engine.timeline.consumer import Share
from angelhair.errors import AngelhairError
from angelhair.model import TIMELINE, Ask, Delivery, DueId, NewMessage
from tests.queues import SECOND, Server, World, succeeded

NAME = "reminders"
DELAY = 5 * SECOND
"""The producer delay of most tests: short, and not without effect."""


async def create(server: Server, **settings: Any) -> str:
    """A timeline; its incarnation."""
    return (await server.create(NAME, **{"kind": TIMELINE, "producer_delay_ms": DELAY, **settings})).incarnation


async def put(server: Server, *bodies: bytes, in_ms: int = 0, **fields: Any) -> list[DueId]:
    """Puts messages that are due in so long by the world's time."""
    due_ms = server.world.dial.wall_ms + in_ms
    messages = [NewMessage(body, due_ms=due_ms, **fields) for body in bodies]
    return [succeeded(outcome) for outcome in await server.put_outcomes(NAME, messages)]


async def receive(
    server: Server, count: int = 1_000, consumer: str | None = None, hide_ms: int | None = None
) -> list[Delivery]:
    ask = Ask(count, hide_ms, consumer=consumer)
    (outcome,) = await server.engine.receive(server.world.account, NAME, [ask])
    found: list[Delivery] = succeeded(outcome)
    return found


async def ack(server: Server, *deliveries: Delivery) -> list[AngelhairError | None]:
    return await server.engine.ack(server.world.account, NAME, [delivery.receipt for delivery in deliveries])


async def take(server: Server, count: int = 1_000, consumer: str | None = None) -> list[bytes]:
    """Receives and acks; the bodies."""
    found = await receive(server, count, consumer)
    if found:
        assert await ack(server, *found) == [None] * len(found)
    return bodies(found)


async def touch(server: Server, consumer: str, most: int | None = None) -> Share:
    return await server.engine.touch_consumer(server.world.account, NAME, consumer, most)


def bodies(found: list[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in found]


async def shard(world: World, incarnation: str, lane: int = 0) -> Values:
    """A shard's row as it lies in the store."""
    (found,) = await world.store.read([Span(places.shard(incarnation, lane))])
    return found.rows[0].values if found.rows else {}


async def pass_time(server: Server, milliseconds: int, *more: Server) -> None:
    """Time passes while servers do their background work."""
    await server.world.work(NAME, milliseconds, [server, *more])


