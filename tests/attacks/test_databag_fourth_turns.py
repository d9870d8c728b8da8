"""Attacks on whose turn it is, where another server has served a partition (D3)."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.databag import ids
from angelhair.engine.members import Holdings, Presence
from angelhair.model import MessageId
from tests.attacks.bags import SECOND_MS, create, delete, put, receive
from tests.attacks.worlds import new_world, played, server


def block_of(message: MessageId) -> int:
    return ids.block_of(ids.slice_of(message.number))


@played
async def test_d3_what_another_server_has_just_served_is_not_the_next_here() -> None:
    """D3: the least recently served partition first, each once before any twice. Two servers live, and nothing is left
    in the share of one; so it helps the other with its. Both go through these in the order of their slices, and neither
    takes notice of what the other does: though the second is refused its lock, and reads in the row that the first
    has served there two seconds ago, it takes the partition at its next try. Every one is served twice before the
    next is once."""
    clock, store = new_world()
    first, helper = server(store, clock), server(store, clock)
    await create(first, min_partitions=16, max_partitions=16, visibility_timeout_ms=SECOND_MS)
    for number, each in enumerate((first, helper)):
        await each.membership.step(Presence(f"place-{number}", "host", number, "1", 0), Holdings())
    await first.membership.look()
    if first.membership.place()[0]:
        first, helper = helper, first
    share = range(limits.BAG_BLOCKS // 2)
    messages = await put(first, 640, at_once=320)
    await delete(helper, *(message for message in messages if block_of(message) not in share))
    served: list[int] = []
    for turn in range(len(share)):
        clock.ms += 2 * SECOND_MS
        found = [delivery.id for delivery in await receive(helper if turn % 2 else first, 10)]
        await delete(first, *found)
        served += {block_of(message) for message in found}
    assert len(set(served)) == len(share), f"{len(share)} servings, one after the other, of partitions {served}"
