"""Looking without receiving, at a bounded number of reads."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids, lock
from angelhair.engine.databag.lane import LANE, Bag
from angelhair.engine.schema import is_whole
from angelhair.engine.store import Row, Span
from angelhair.model import MessageId, Peeked

COLUMNS = ("deleted", "enqueued_at")
BLOCKS = range(limits.BAG_BLOCKS)


async def peek(bag: Bag, most: int) -> list[Peeked]:
    """Some messages that are there, served or not."""
    found: list[Peeked] = []
    for block, epochs in zip(BLOCKS, await epochs_of.load(bag, BLOCKS), strict=True):
        for epoch in epochs.read:
            first: int | None = None
            while len(found) < most:
                span = Span(bag.messages(block, epoch), first, None, max(limits.BAG_LOOK_ROWS, most - len(found)))
                (slice_,) = await bag.store.read([span])
                found += [_peeked(row) for row in slice_.rows if _is_there(bag, row) and is_whole(row.values)]
                if not slice_.more:
                    break
                first = int(slice_.rows[-1].key) + 1
    return found[:most]


def _is_there(bag: Bag, row: Row) -> bool:
    values = row.values
    return (
        values.get("deleted") is None
        and values.get("enqueued_at") is not None
        and not bag.expired(values.get("enqueued_at"), bag.clock.now())
    )


def _peeked(row: Row) -> Peeked:
    body, attributes, origin = row.values.get("body"), row.values.get("attributes"), row.values.get("origin")
    enqueued_at = row.values.get("enqueued_at")
    return Peeked(
        MessageId(LANE, int(row.key)), body if isinstance(body, bytes) else b"",
        str(attributes) if attributes else None, 0, enqueued_at if isinstance(enqueued_at, int) else 0,
        str(origin) if origin else None,
    )


async def stats(bag: Bag, most: int) -> Stats:
    """Exact while the rows of a block are few, deleted ones included; beyond, what was read is stretched."""
    stats = Stats()
    await lock.load(bag, BLOCKS)
    for block, epochs in zip(BLOCKS, await epochs_of.load(bag, BLOCKS), strict=True):
        stats.add(await _block_stats(bag, block, epochs, most))
    stats.partitions = bag.view.partitions
    stats.duplicates = sum(block_view.duplicates for block_view in bag.view.blocks)
    return stats


async def _block_stats(bag: Bag, block: int, epochs: epochs_of.Epochs, most: int) -> Stats:
    stats, now, left = Stats(), bag.clock.now(), most
    view, by_wall = bag.view.blocks[block], bag.trusts_clock(now)
    in_flight = {
        number for each in view.locks.values() if each.holds(now, by_wall) for number in each.given
    }
    seen = 0
    for epoch in epochs.read:
        if left <= 0:
            stats.exact = False
            break
        (slice_,) = await bag.store.read([Span(bag.messages(block, epoch), None, None, left, COLUMNS)])
        seen, left = seen + 1, left - len(slice_.rows)
        for row in slice_.rows:
            if not _is_there(bag, row):
                continue
            if int(row.key) in in_flight:
                stats.in_flight += 1
                continue
            stats.visible += 1
            enqueued_at = row.values.get("enqueued_at")
            if isinstance(enqueued_at, int):
                stats.oldest_age_ms = max(stats.oldest_age_ms or 0, now.wall_ms - enqueued_at)
        if slice_.more and slice_.rows:
            # Of this epoch so much of the slices was read.
            read = ids.slice_of(int(slice_.rows[-1].key)) - block * ids.BLOCK_SLICES + 1
            stats.exact = False
            stats.visible = stats.visible * ids.BLOCK_SLICES // read
    if not stats.exact and seen:
        stats.visible = stats.visible * len(epochs.read) // seen
    return stats
