"""A lane's durable marks, and what it means that they are gone. What they mean is written in each kind's `lane.py`."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, Partition, RowChange, Slice, Store
from angelhair.errors import StoreError


class QueueGone(Exception):
    """The incarnation that a server remembered has been deleted: forget it and look the name up again (R6)."""


class LaneSealed(Exception):
    """The lane takes no more puts: look the queue's lanes up again (R11)."""


class Marks(NamedTuple):
    """A lane's durable marks as last read."""

    next_id: int
    reader: int
    final: int
    settled: int
    repair: int
    floor: int
    dropped: int
    purged: int
    archived: int
    wake_raised: int
    wake_done: int
    wake_dropped: int
    erased: int
    epoch: int = 0
    """Of a fifo lane: which partition of its groups is in force; those below `epoch_dropped` are gone."""
    epoch_dropped: int = 0


POINTER_NAMES = tuple(name for name in Marks._fields if name != "next_id")


def pointer_marks(pointers: Slice) -> Marks:
    """The marks in a lane's partition. A lane has all of them as long as it lives; without any it is gone."""
    if not pointers.rows:
        raise QueueGone("the lane has been dropped")
    found = {row.key: row.values["value"] for row in pointers.rows}
    values = [found.get(name, 0) for name in POINTER_NAMES]
    return Marks(0, *[value if isinstance(value, int) else 0 for value in values])


class Marked(Protocol):
    """As much of a lane as it takes to move a mark of it."""

    @property
    def store(self) -> Store: ...

    @property
    def pointers(self) -> Partition: ...


async def raise_mark(lane: Marked, name: str, old: int, new: int, while_at: tuple[str, int] | None = None) -> bool:
    """Moves one mark, if it still is where the caller saw it. True when it stands at `new` or above.

    `while_at` names another mark that must not have moved either.
    """
    rows = [RowChange(name, {"value": old}, {"value": new})]
    if while_at is not None:
        rows.append(RowChange(while_at[0], {"value": while_at[1]}, {"value": while_at[1]}))
    outcome = await change_one(lane.store, Change(lane.pointers, rows))
    if isinstance(outcome, StoreError):
        raise outcome
    if isinstance(outcome, Applied):
        return True
    value = outcome.rows.get(name, {}).get("value")
    return isinstance(value, int) and value >= new
