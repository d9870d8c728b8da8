"""Runs: rows next to each other of which the same is expected, and in which the same is set.

A group that claims or acks consists of little else. One statement tests a run and one changes it, however long it is;
row by row, each value of each row is handed over and compared by itself, which took three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import apsw

from angelhair.engine.store import Key, Partition, RowChange, Value, Values
from angelhair.stores.sqlite import statements

SHORTEST = 4
"""Rows that are worth two statements of their own."""


class Run(NamedTuple):
    first: int
    last: int
    expect: Values
    values: Values

    @property
    def _of_absent(self) -> bool:
        """Whether rows that are not there are what is expected."""
        return all(value is None for value in self.expect.values())

    def is_as_expected(self, connection: apsw.Connection, place: Partition, now_ms: int) -> bool:
        table, partition = place
        absent = self._of_absent
        parameters: tuple[Value, ...] = (partition, self.first, self.last, now_ms)
        if not absent:
            parameters += (*self.expect.values(), self.last - self.first + 1)
        return not connection.execute(
            statements.unexpected_in_run(table, tuple(self.expect), absent), parameters
        ).get

    def set(self, connection: apsw.Connection, place: Partition, expires_ms: int | None, now_ms: int) -> None:
        """After they were seen to be as expected, in the same transaction."""
        table, partition = place
        columns = tuple(self.values)
        if self._of_absent:
            connection.execute(
                statements.upsert_run(table, columns),
                (partition, self.first, self.last, now_ms, *self.values.values(), expires_ms),
            )
        else:
            connection.execute(
                statements.update_run(table, columns),
                (partition, self.first, self.last, *self.values.values(), expires_ms),
            )


def runs_among(rows: Sequence[RowChange]) -> tuple[list[Run], Sequence[RowChange]]:
    """The runs, and the rows that are in none. Values that are the same are told by being the same object: whoever
    builds rows that are alike builds their values once."""
    if len(rows) < SHORTEST:
        return [], rows
    runs: list[Run] = []
    single: list[RowChange] = []
    for begin, end in _stretches(rows):
        first, expect, values = rows[begin]
        if end - begin < SHORTEST or not expect or not values or not isinstance(first, int):
            single += rows[begin:end]
        else:
            runs.append(Run(first, first + end - begin - 1, expect, values))
    return runs, single


def _stretches(rows: Sequence[RowChange]) -> Iterator[tuple[int, int]]:
    """Where rows begin and end that are alike and next to each other."""
    begin = 0
    following: Key | None
    following, expect, values = rows[0]
    for index, (key, expected, wanted) in enumerate(rows):
        if key != following or expected is not expect or wanted is not values:
            yield begin, index
            begin, expect, values = index, expected, wanted
        following = key + 1 if isinstance(key, int) else None
    yield begin, len(rows)
