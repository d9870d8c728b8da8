"""Whether messages wait behind locks: those that a serving has left, and those that were put since then.

A server knows neither what others have left nor what they have put. So it is looked at in the store, once before
partitions become fewer: what is looked at while most of a databag is locked is empty, and says nothing. And once before
they become more, where receives found too little and something locked: what came to locked partitions nobody has left.
"""

from __future__ import annotations

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids, lock
from angelhair.engine.databag.lane import Bag, Lock
from angelhair.engine.store import Row, Span

BLOCKS = range(limits.BAG_BLOCKS)
COLUMNS = ("deleted", "enqueued_at")


async def some_wait(bag: Bag, surely: bool) -> bool:
    """Unless it must be sure, true as well when there is more than can be looked at. Raises `QueueGone`."""
    await lock.load(bag, BLOCKS)
    now = bag.clock.now()
    by_wall = bag.trusts_clock(now)
    if not surely and any(block.left_behind(now, by_wall) for block in bag.view.blocks):
        return True
    held = {block: found for block in BLOCKS if (found := _held(bag, block, now, by_wall))}
    if not held:
        return False
    spans: list[Span] = []
    for block, epochs in zip(held, await epochs_of.known(bag, list(held)), strict=True):
        first, last = ids.first_of(min(held[block])), ids.last_of(max(held[block]))
        spans += [
            Span(bag.messages(block, epoch), first, last, limits.BAG_FINISH_ROWS, COLUMNS) for epoch in epochs.read
        ]
    for slice_ in await bag.store.read(spans):
        if (slice_.more and not surely) or any(_waits(bag, row, held, now) for row in slice_.rows):
            return True
    return False


def _held(bag: Bag, block: int, now: Moment, by_wall: bool) -> dict[int, Lock]:
    """By slice, the locks that hold."""
    first = block * ids.BLOCK_SLICES
    return {
        first + place: each
        for place, each in enumerate(bag.view.blocks[block].by_slice)
        if each is not None and each.holds(now, by_wall)
    }


def _waits(bag: Bag, row: Row, held: dict[int, dict[int, Lock]], now: Moment) -> bool:
    """It is behind a lock, and none of those that were given."""
    number, enqueued_at = int(row.key), row.values.get("enqueued_at")
    slice_ = ids.slice_of(number)
    behind = held[ids.block_of(slice_)].get(slice_)
    return (
        behind is not None
        and number not in behind.given
        and row.values.get("deleted") is None
        and enqueued_at is not None
        and not bag.expired(enqueued_at, now)
    )
