"""What doors keep with a queue: carried through every change of it, and changed only by what it is at that moment."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.catalog import Queue, Rewrite, Rewritten
from angelhair.engine.schema import QUEUES
from angelhair.errors import InvalidRequest
from angelhair.model import QueueSettings
from tests.faults import LOSE_ANSWER
from tests.queues import SECOND, World


def tagging(**tags: str) -> Rewrite:
    def rewrite(queue: Queue) -> Rewritten:
        return Rewritten({}, {**queue.notes, **tags})

    return rewrite


async def notes_of(world: World) -> object:
    return (await world.queue("orders")).notes


async def test_r06_notes_outlive_every_change_of_the_queue(world: World) -> None:
    server, other = world.server(), world.server()
    await server.engine.create_queue(world.account, "orders", QueueSettings(lanes=2), {"team": "shop"})
    await server.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": SECOND})
    await other.engine.change_queue(world.account, "orders", {"lanes": 1})
    # The sealed lane is read to its end, kept and forgotten: the catalog's row is written for each.
    for _ in range(4):
        await other.work("orders", 60 * SECOND)
    assert await notes_of(world) == {"team": "shop"}


async def test_r06_two_who_change_the_notes_at_once_lose_neither(world: World) -> None:
    """Naive: write what was made from the queue as it was remembered; the other's note is gone."""
    server, other = world.server(), world.server()
    await server.create("orders")

    async def between() -> None:
        await other.engine.rewrite_queue(world.account, "orders", tagging(cost="low"))

    server.store.next("change", QUEUES, between)
    await server.engine.rewrite_queue(world.account, "orders", tagging(team="shop"))
    assert await notes_of(world) == {"cost": "low", "team": "shop"}


async def test_r06_notes_whose_answer_was_lost_are_there_once(world: World) -> None:
    server = world.server()
    await server.create("orders")
    server.store.next("change", QUEUES, LOSE_ANSWER)
    await server.engine.rewrite_queue(world.account, "orders", tagging(team="shop"))
    assert await notes_of(world) == {"team": "shop"}


async def test_r06_a_queue_made_again_has_none_of_the_old_notes(world: World) -> None:
    server = world.server()
    await server.engine.create_queue(world.account, "orders", QueueSettings(), {"team": "shop"})
    # An existing queue is returned as it is: its notes are not compared, and not replaced.
    same, made = await server.engine.create_queue(world.account, "orders", QueueSettings(), {"team": "other"})
    assert not made
    assert same.notes == {"team": "shop"}
    await server.engine.delete_queue(world.account, "orders")
    await server.engine.create_queue(world.account, "orders", QueueSettings())
    assert await notes_of(world) == {}


async def test_notes_over_the_limit_change_nothing(world: World) -> None:
    server = world.server()
    long = "n" * limits.NOTES_BYTES
    with pytest.raises(InvalidRequest, match="notes"):
        await server.engine.create_queue(world.account, "orders", QueueSettings(), {"long": long})
    await server.create("orders")
    with pytest.raises(InvalidRequest, match="notes"):
        await server.engine.rewrite_queue(world.account, "orders", tagging(long=long))
    assert await notes_of(world) == {}
