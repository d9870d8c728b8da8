"""What a databag's partitions look like, for whoever asks."""

from __future__ import annotations

from typing import NamedTuple

from angelhair import limits
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import lock
from angelhair.engine.databag.lane import Bag

BLOCKS = range(limits.BAG_BLOCKS)


class BagSeen(NamedTuple):
    partitions: int
    """In force on the server that is asked."""
    min_partitions: int
    max_partitions: int
    visibility_timeout_ms: int
    """These too; what is stored may be newer."""
    sync_ms: int
    locked: int
    """Partitions of which something is locked now."""
    epochs: int
    """Of all blocks: those that are there."""
    duplicates: int
    """Messages that were served though they had been deleted, as far as the store shows it."""


async def inspect(bag: Bag, sync_ms: int) -> BagSeen:
    await lock.load(bag, BLOCKS)
    found = await epochs_of.load(bag, BLOCKS)
    view, now, settings = bag.view, bag.clock.now(), bag.settings
    by_wall = bag.trusts_clock(now)
    locked = sum(view.blocks[run.block].is_locked(run, now, by_wall) for run in view.runs)
    return BagSeen(
        view.partitions, settings.min_partitions, settings.max_partitions, settings.visibility_timeout_ms, sync_ms,
        min(locked, view.partitions), sum(len(epochs.read) for epochs in found),
        sum(block.duplicates for block in view.blocks),
    )
