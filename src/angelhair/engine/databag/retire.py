"""What goes: finished epochs, whole, when their history is over (R14). No row is ever deleted by itself, so no look has
to pass over what is gone."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag.duplicates import count_before_drop
from angelhair.engine.databag.epochs import Epochs
from angelhair.engine.databag.lane import Bag


async def drop_some(bag: Bag, block: int, epochs: Epochs) -> int:
    """Drops what may go of a block; how many epochs went. First it is written down that nobody is to read there any
    more, then it is dropped, and then forgotten: whoever dies on the way leaves what another goes on with."""
    gone = 0
    for over in epochs.over:
        now = bag.clock.now()
        if not bag.trusts_clock(now):
            return gone
        if not over.dropping:
            if now.wall_ms - over.at_ms < bag.kept_ms:
                continue
            if not await count_before_drop(bag, block, epochs, over):
                return gone
            changed = await epochs_of.change(bag, block, epochs, epochs.dropping(over))
            if changed is None:
                return gone
            epochs = changed
        numbers = range(over.first, min(over.last + 1, over.first + limits.BAG_DROPPED_EPOCHS))
        for outcome in await bag.store.drop([bag.messages(block, number) for number in numbers]):
            if outcome is not None:
                raise outcome
        changed = await epochs_of.change(bag, block, epochs, epochs.without(over, numbers[-1]))
        if changed is None:
            return gone
        epochs, gone = changed, gone + len(numbers)
    return gone
