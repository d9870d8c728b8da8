"""What the cluster holds of a partition and of a row, and what of it is not everywhere yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from angelhair.engine.store import Change, Key, Row, Values

NEVER = -1
"""A stamp below every other."""


class RowState:
    __slots__ = ("expiries", "record", "stamps")

    def __init__(self, record: Row, stamps: dict[str, int]) -> None:
        self.record = record
        """The row as reads give it; replaced, never modified, so that answers stay as they were."""
        self.stamps = stamps
        """Of every cell that was ever set, those now None included."""
        self.expiries: dict[str, int] | None = None

    def seen_at(self, now_us: int) -> Row | None:
        """The row without its expired cells; None if nothing is left, as a row without values is not there."""
        record = self.record
        if self.expiries is not None:
            gone = [column for column, expires_us in self.expiries.items() if expires_us <= now_us]
            if gone:
                values = {column: value for column, value in record.values.items() if column not in gone}
                record = Row(record.key, values)
        return record if record.values else None


class Undecided:
    """A change that a majority accepted and nobody has completed: plain reads do not see it."""

    __slots__ = ("change", "on_one", "order")

    def __init__(self, change: Change, order: int, on_one: bool) -> None:
        self.change = change
        self.order = order
        self.on_one = on_one
        """One replica has heard that it is decided: a plain read that asks that one does see it."""


class PartitionState:
    __slots__ = ("drop_landed_order", "dropped_stamp", "flag_stamps", "flags", "highest_stamp", "keys", "on_one",
                 "rows", "sparse", "undecided", "until_dropped")

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.rows: dict[Key, RowState] = {}
        self.flags: Values = {}
        self.flag_stamps: dict[str, int] = {}
        self.highest_stamp = NEVER
        self.dropped_stamp = NEVER
        self.drop_landed_order = NEVER
        self.sparse = False
        """Some rows may expire or have no values left: a read has to look at each."""
        self.undecided: Undecided | None = None
        self.on_one: list[OnOne] = []
        """Blind writes that have reached one replica and nothing more."""
        self.until_dropped: list[int] = []


class OnOne(NamedTuple):
    """A blind write that has reached one replica."""

    rows: Sequence[Row]
    stamp: int
    begun_order: int
    ttl_seconds: int | None
