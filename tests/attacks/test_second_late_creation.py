"""Attacks on queues that are made, deleted and made again, by creations that land late."""

from __future__ import annotations

from angelhair.engine.schema import SEQUENCES
from angelhair.model import MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import HookedStore, LandsLate, bodies, consume, new_world, on, played, server


@played
async def test_lanes_whose_creation_lands_after_their_burial_take_no_message() -> None:
    """A queue is made (a first copy of its lanes' creation is still on its way), deleted, buried and made again; the
    copy lands; a server that has not heard of all this puts a message.
    The naive engine found the dead incarnation's lanes as new, confirmed the put there, and nobody ever read it."""
    clock, store = new_world()
    slow_store = HookedStore(store)
    slow, unaware, other = server(slow_store, clock), server(store, clock), server(store, clock)
    late = LandsLate(on(SEQUENCES))
    slow_store.hooks["change"] = late
    await slow.create_queue("shop", "jobs", QueueSettings())
    await unaware.find_queue("shop", "jobs")
    await other.delete_queue("shop", "jobs")
    while await other.bury_step():
        pass
    await other.create_queue("shop", "jobs", QueueSettings())
    clock.ms += 1_000
    await store.change(late.items)
    (outcome,) = await unaware.put("shop", "jobs", [NewMessage(b"message")])
    assert isinstance(outcome, MessageId)
    assert bodies(await consume(other, clock)) == [b"message"]
