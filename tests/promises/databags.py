"""What tests of databags do on the way."""

from __future__ import annotations

from typing import Any

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.epochs import Epochs, parse
from angelhair.engine.kinds.databag import Databag
from angelhair.engine.store import Row, Span
from angelhair.errors import AngelhairError
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage
from tests.queues import SECOND, Server, World, succeeded

NAME = "events"
BLOCKS = range(limits.BAG_BLOCKS)
HIDE = 30 * SECOND


async def create(server: Server, **settings: Any) -> str:
    """A databag; its incarnation."""
    return (await server.create(NAME, **{"kind": DATABAG, "visibility_timeout_ms": HIDE, **settings})).incarnation


async def put(server: Server, *bodies: bytes) -> list[MessageId]:
    outcomes = await server.put_outcomes(NAME, [NewMessage(body) for body in bodies])
    return [succeeded(outcome) for outcome in outcomes]


async def put_many(server: Server, count: int, at_once: int = 10) -> list[MessageId]:
    found: list[MessageId] = []
    for first in range(0, count, at_once):
        found += await put(server, *(b"%d" % number for number in range(first, min(first + at_once, count))))
    return found


async def receive(server: Server, count: int = 10) -> list[Delivery]:
    (outcome,) = await server.engine.receive(server.world.account, NAME, [Ask(count)])
    found: list[Delivery] = succeeded(outcome)
    return found


async def delete(server: Server, *messages: MessageId) -> list[AngelhairError | None]:
    return await server.engine.ack(server.world.account, NAME, [str(message) for message in messages])


async def drain(server: Server, at_once: int = 10, rounds: int = 1_000) -> list[bytes]:
    """Receives and deletes until there is nothing unlocked any more; the bodies."""
    bodies: list[bytes] = []
    for _ in range(rounds):
        found = await receive(server, at_once)
        if not found:
            return bodies
        assert await delete(server, *(delivery.id for delivery in found)) == [None] * len(found)
        bodies += [delivery.body for delivery in found]
    raise AssertionError("it never ends")


async def drain_all(server: Server, at_once: int = 10) -> list[bytes]:
    """As `drain`, and again when the locks are over, until all is gone."""
    bodies: list[bytes] = []
    while found := await drain(server, at_once):
        bodies += found
        server.world.wait(HIDE)
    return bodies


async def epochs(world: World, incarnation: str, block: int) -> Epochs:
    (found,) = await world.store.read([Span(places.bag_epochs(incarnation), block, block)])
    return parse(found.rows[0].values)


async def locks(world: World, incarnation: str) -> dict[int, dict[str, Any]]:
    """All rows of locks as they lie in the store, by their first slices."""
    slices = await world.store.read([Span(places.bag_locks(incarnation, block)) for block in BLOCKS])
    return {int(row.key): dict(row.values) for slice_ in slices for row in slice_.rows}


async def rows(world: World, incarnation: str, block: int, epoch: int) -> list[Row]:
    (found,) = await world.store.read([Span(places.bag_messages(incarnation, block, epoch))])
    return list(found.rows)


def block_of(message: MessageId) -> int:
    return ids.block_of(ids.slice_of(message.number))


async def seal(server: Server, *blocks: int) -> None:
    """The open epochs of these blocks are sealed, as if they were full; of all, if none is named."""
    bag = await Databag(server.engine.memory).bag(await server.world.queue(NAME))
    for block in blocks or BLOCKS:
        (found,) = await epochs_of.load(bag, [block])
        assert await epochs_of.seal(bag, block, found)


async def put_in(server: Server, block: int, *bodies: bytes) -> list[MessageId]:
    """Puts a small group, which lies in one block, until it is this one; the others are deleted."""
    while block_of((found := await put(server, *bodies))[0]) != block:
        await delete(server, *found)
    return found
