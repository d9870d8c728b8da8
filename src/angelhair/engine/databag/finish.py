"""Which sealed epochs are finished: all of their messages are deleted, or past their retention (R1, R15).

An epoch is read after its seal is settled, so what was confirmed while it was open is seen; and its end is refused if
anything was admitted since. What was read once is not read again: what is deleted stays so.
"""

from __future__ import annotations

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.duplicates import count_of_epoch
from angelhair.engine.databag.epochs import Epochs, Sealed
from angelhair.engine.databag.lane import Bag, Scan
from angelhair.engine.store import Span, Values

COLUMNS = ("deleted", "enqueued_at", "held_at")


async def finish_some(bag: Bag, block: int, epochs: Epochs) -> Epochs:
    """Finishes what can be, of those whose turn it is; the epochs as they are then."""
    await _count_ended(bag, block, epochs)
    turns = _in_turn(bag, block, epochs)
    if any(sealed.number >= bag.view.blocks[block].settled for sealed in turns):
        # Another has sealed: it may be that we see it, and a putter does not.
        await epochs_of.settle(bag)
    for sealed in turns:
        if await _is_over(bag, block, sealed):
            if not await count_of_epoch(bag, block, epochs, sealed.number):
                return epochs
            over = epochs.finished([sealed.number], await bag.time_ms(), bag.kept_ms)
            changed = await epochs_of.change(bag, block, epochs, over)
            if changed is None:
                # Somebody was faster, with this or with an admission: the next step looks again.
                return epochs
            epochs = changed
            # Again: somebody may have locked, with what it had read before, since we looked.
            await _count_ended(bag, block, epochs)
    return epochs


async def _count_ended(bag: Bag, block: int, epochs: Epochs) -> None:
    """What locks show of epochs that are finished: by us, or by somebody who may have died before it came to this."""
    view = bag.view.blocks[block]
    for number in sorted(view.uncounted):
        if not await count_of_epoch(bag, block, epochs, number):
            return
        view.uncounted.discard(number)


def _in_turn(bag: Bag, block: int, epochs: Epochs) -> list[Sealed]:
    """Those that looks have seen to be empty, and a few others: to read all of a long backlog every time would cost its
    messages more than serving them."""
    view, all_slices = bag.view.blocks[block], (1 << ids.BLOCK_SLICES) - 1
    seen = [each for each in epochs.sealed if view.is_empty(each.number, each.admitted, all_slices)]
    others = [each for each in epochs.sealed if each not in seen]
    first = next((place for place, each in enumerate(others) if each.number > view.finished_last), 0)
    turns = (others[first:] + others[:first])[: limits.BAG_FINISH_EPOCHS]
    if turns:
        view.finished_last = turns[-1].number
    return sorted([*seen, *turns])


async def _is_over(bag: Bag, block: int, sealed: Sealed) -> bool:
    view = bag.view.blocks[block]
    scan = view.scans.get(sealed.number)
    if scan is None or scan.admitted != sealed.admitted:
        scan = view.scans[sealed.number] = Scan(sealed.admitted)
    partition, last = bag.messages(block, sealed.number), ids.last_of(limits.BAG_SLICES - 1)
    for _ in range(limits.BAG_FINISH_PAGES):
        (found,) = await bag.store.read([Span(partition, scan.reached, last, limits.BAG_FINISH_ROWS, COLUMNS)])
        now = bag.clock.now()
        for row in found.rows:
            if not _is_row_over(bag, row.values, now):
                scan.reached = int(row.key)
                # A put of unknown outcome may land where looks had found nothing left, and nobody admits it (R4).
                view.empty.pop(sealed.number, None)
                return False
        if not found.more:
            return True
        scan.reached = int(found.rows[-1].key) + 1
    return False


def _is_row_over(bag: Bag, values: Values, now: Moment) -> bool:
    if values.get("deleted") is not None:
        return True
    if (enqueued_at := values.get("enqueued_at")) is None:
        return bag.is_given_up(values.get("held_at"), now)
    return bag.expired(enqueued_at, now)
