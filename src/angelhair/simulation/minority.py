"""What has reached one replica and not yet a majority: some reads meet it, others do not.

Cassandra's reads ask a majority. One that meets a row which only a minority has gives it to the others, so that all
later reads see it: of the row what was asked for, and nothing else (row 19 of docs/cassandra.md). A world whose store
does not repair what it reads shows the same row whole to one read and not at all to the next.
"""

from __future__ import annotations

from typing import NamedTuple

from angelhair.engine.store import Key, Values
from angelhair.simulation.states import PartitionState, RowState

MEETS = 2 / 3
"""How often a majority of three replicas has a given one among them."""

COPIES_MOST = 64
"""Of such writes that one partition has at the same time: each read looks at all of them."""


class Wanted(NamedTuple):
    """What a page of a span asks for."""

    first: Key | None
    last: Key | None
    after: Key | None
    columns: tuple[str, ...] | None

    def has(self, key: Key) -> bool:
        return not (
            (self.first is not None and key < self.first)  # type: ignore[operator]
            or (self.last is not None and key > self.last)  # type: ignore[operator]
            or (self.after is not None and key <= self.after)  # type: ignore[operator]
        )

    def of(self, values: Values) -> Values:
        columns = self.columns
        return values if columns is None else {name: values[name] for name in columns if name in values}


ALL = Wanted(None, None, None, None)


class Before:
    """What a partition is without what one read met: where reads repair nothing, the next one finds it as it was."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._rows: dict[Key, RowState | None] = {}
        self._keys, self._flags, self._flag_stamps = list(state.keys), state.flags, dict(state.flag_stamps)
        self._highest_stamp = state.highest_stamp

    def note(self, key: Key) -> None:
        if key not in self._rows:
            row = self._state.rows.get(key)
            self._rows[key] = row
            if row is not None:
                copied = self._state.rows[key] = RowState(row.record, dict(row.stamps))
                copied.expiries = None if row.expiries is None else dict(row.expiries)

    def restore(self) -> None:
        state = self._state
        for key, row in self._rows.items():
            if row is not None:
                state.rows[key] = row
            else:
                state.rows.pop(key, None)
        state.keys, state.flags, state.flag_stamps = self._keys, self._flags, self._flag_stamps
        state.highest_stamp = self._highest_stamp
