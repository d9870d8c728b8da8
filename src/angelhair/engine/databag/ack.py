"""Delete by id: a column is set, blindly, and never unset (D5). The id says where.

What is gone, and what never was, is deleted as well: nothing is read to find out. Deletes of what never was lie in
their epoch's partition until that goes, and count when it is sealed.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag.epochs import Place, block_of, place_of
from angelhair.engine.databag.lane import Bag
from angelhair.engine.settling import write_through
from angelhair.engine.store import Row, Write
from angelhair.errors import AngelhairError


async def delete(bag: Bag, numbers: Sequence[int]) -> list[AngelhairError | None]:
    """None for each that is deleted, or the error that it met. Raises `QueueGone`."""
    blocks = sorted({block_of(number) for number in numbers})
    epochs = dict(zip(blocks, await epochs_of.known(bag, blocks), strict=True))
    unknown = [number for number in numbers if place_of(number, epochs[block_of(number)]) is None]
    if unknown:
        # Of an epoch that is newer than what we remember, or that is gone: only a look now can tell (R4).
        epochs.update(await epochs_of.load_for(bag, unknown))
    now_ms = await bag.time_ms()
    places = [place_of(number, epochs[block_of(number)]) for number in numbers]
    rows: dict[Place, dict[int, Row]] = {}
    for number, place in zip(numbers, places, strict=True):
        if place is not None:
            rows.setdefault(place, {})[number] = Row(number, {"deleted": now_ms})
    writes = [Write(bag.messages(*place), list(some.values())) for place, some in rows.items()]
    written = dict(zip(rows, await write_through(bag.store, writes), strict=True)) if writes else {}
    outcomes = [None if place is None else written[place] for place in places]
    bag.view.remember_deleted([number for number, outcome in zip(numbers, outcomes, strict=True) if outcome is None])
    for (block, epoch), some in rows.items():
        await epochs_of.count(bag, block, epoch, len(some))
    return list(outcomes)
