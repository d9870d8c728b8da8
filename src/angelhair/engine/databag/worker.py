"""A server's background work for a databag, block by block: each has one server that tends it, as far as they agree on
who lives. Two at once do no harm."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import share
from angelhair.engine.databag.epochs import Epochs
from angelhair.engine.databag.finish import finish_some
from angelhair.engine.databag.lane import Bag
from angelhair.engine.databag.retire import drop_some
from angelhair.engine.store import Span
from angelhair.errors import StoreError


async def step(bag: Bag) -> int:
    """Returns in how many milliseconds to come back. A block that cannot be read stops no other."""
    now_ms = bag.clock.now().monotonic_ms
    own = share(limits.BAG_BLOCKS, bag.place, bag.servers)
    due = [block for block in own if now_ms - bag.view.blocks[block].tended_ms >= limits.BAG_TEND_MS]
    if not due:
        return limits.BAG_STEP_MS
    first_error: StoreError | None = None
    for block, epochs in zip(due, await epochs_of.load(bag, due), strict=True):
        try:
            await tend(bag, block, epochs)
            bag.view.blocks[block].tended_ms = now_ms
        except StoreError as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error
    return limits.BAG_STEP_MS


async def tend(bag: Bag, block: int, epochs: Epochs) -> None:
    if await _is_old(bag, block, epochs):
        await epochs_of.seal(bag, block, epochs)
        (epochs,) = await epochs_of.load(bag, [block])
    epochs = await finish_some(bag, block, epochs)
    await drop_some(bag, block, epochs)


async def _is_old(bag: Bag, block: int, epochs: Epochs) -> bool:
    """Whether the open epoch has been there for long, and something of it is deleted: it is sealed so that this can go.
    What only waits would be in more and more epochs, all of which a look reads. An early seal, by a clock that is
    wrong, does no harm."""
    if await bag.time_ms() - epochs.opened_at_ms < limits.BAG_EPOCH_AGE_MS or 2 * (
        epochs.open - epochs.oldest
    ) > ids.EPOCHS:
        return False
    span = Span(bag.messages(block, epochs.open), limit=limits.BAG_FINISH_ROWS, columns=("deleted", "enqueued_at"))
    (found,) = await bag.store.read([span])
    now = bag.clock.now()
    return any(
        row.values.get("deleted") is not None or bag.expired(row.values.get("enqueued_at"), now) for row in found.rows
    )
