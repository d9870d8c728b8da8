"""The port: what the engine asks of a place where rows live.

A store holds tables. A table is cut into partitions, a partition holds rows in the order of their keys and, in some
tables, flags that belong to the whole partition. **One partition is the unit of atomicity**; nothing spans two.

A table is either *plain* (written blindly, never conditionally) or *conditional* (only ever changed conditionally).
The two are never mixed in one table: on Cassandra a blind write with a fast clock would shadow conditional ones.

The contract, in the words that `tests/contract` checks:

 1. `read` sees every write, change and drop that was confirmed before the read began. It may or may not see those
    whose outcome is not known yet: one row of them and not the next, and not again what it saw once; of a row some
    columns and not the others, if somebody has read those alone. So a column of bytes in a plain table is read with
    all of its row. Of a change its flags, which every read of the partition sees, may be there before its rows: who
    takes a flag for a word on rows has the change land first, by another one of that partition, which may only test.
    But of a *small* table a read sees all of a change or nothing of it: flags and rows are of one instant, and what
    others may be shown of a change by this read is the whole of it. A span that is read in several pages is not a
    snapshot; of what was confirmed its flags are at least as old as its rows.
 2. `write` is blind and idempotent: the same rows again change nothing. For two different values under one key the
    last one by the store's clocks wins, so callers write a key once, or do not care which value stays. The rows of
    one write need not land together.
 3. `change` is all or none. It is applied when every expectation holds at one instant, and no other change of that
    partition comes between the test and the effect. A column that was never set, and every column of an absent row,
    equals None. A row change whose values are empty only tests; one whose values are None deletes the row. A change
    names a key once.
 4. A refused change answers with the flags and the rows it names as they were at some instant after the refusal was
    decided. Rows that are absent are left out.
 5. `Unavailable` means that nothing happened and nothing will. `OutcomeUnknown` means that it may have happened, or
    may happen arbitrarily later: even after a drop of the partition. Whatever is not provably unsent is unknown.
 6. `drop` removes all rows and flags of a partition that were written before it began. Dropping twice is harmless.
 7. With `ttl_seconds` the rows vanish by themselves after about that long; flags never do.
 8. Items of one call are independent of each other: each has its own outcome, and they may run in any order.
 9. `time_ms` is the store's idea of wall time, the one behind its write times.
10. A store that `joins` can do more than a partition at a time: `together` makes a change and, if that is applied, the
    writes, all or none, and then reads. What is unknown is unknown of all of it. Others need not have the verb.

Keys are `int` (64 bits, signed) or `str`, as the table says; values are `int` (64 bits, signed), `str`, `bytes` or
None. Writing None unsets a column, and a column that is None may be left out of what is read: ask with `.get`. A row
whose columns are all None may be there or not. Rows that were written with a TTL are only ever rewritten whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast, overload

from angelhair.errors import StoreError

Key = int | str
Value = int | str | bytes | None
Values = Mapping[str, Value]

NOTHING: Values = {}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What a store has to know to lay a table out. Tables are module constants and compared by identity."""

    name: str
    conditional: bool
    key: type[int] | type[str]
    columns: Mapping[str, type[int] | type[str] | type[bytes]]
    flags: Mapping[str, type[int] | type[str] | type[bytes]] = field(default_factory=dict)
    small: bool = False
    """Its partitions have `limits.SMALL_ROWS` rows and `limits.SMALL_BYTES` at most: each is read whole, at once."""


class Partition(NamedTuple):
    table: Table
    key: str


class Row(NamedTuple):
    key: Key
    values: Values


class RowsInARow(Sequence[Row]):
    """Rows whose keys follow each other and that differ in one column only: a store may take the column as a whole. To
    any other they are rows like others, made when they are asked for."""

    __slots__ = ("column", "different", "first", "same")

    def __init__(self, first: int, column: str, different: Sequence[Value], same: Values) -> None:
        self.first = first
        self.column = column
        self.different = different
        self.same = same

    def __len__(self) -> int:
        return len(self.different)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        return Row(self.first + place, {self.column: self.different[place], **self.same})


class Span(NamedTuple):
    """A run of rows of one partition, both ends included; None leaves an end open."""

    partition: Partition
    first: Key | None = None
    last: Key | None = None
    limit: int | None = None
    columns: tuple[str, ...] | None = None
    """Only these columns are wanted; None means all. Flags always come along."""


class Slice(NamedTuple):
    flags: Values
    rows: Sequence[Row]
    more: bool
    """The limit was reached: there may be more rows in the span."""


class Write(NamedTuple):
    partition: Partition
    rows: Sequence[Row]
    ttl_seconds: int | None = None


class RowChange(NamedTuple):
    key: Key
    expect: Values
    values: Values | None
    """The columns to set; the others stay. None deletes the row."""


class Change(NamedTuple):
    partition: Partition
    rows: Sequence[RowChange] = ()
    expect_flags: Values = NOTHING
    set_flags: Values = NOTHING
    ttl_seconds: int | None = None


class Applied(NamedTuple):
    """Every expectation held, and the change is confirmed."""


class Refused(NamedTuple):
    """An expectation did not hold; nothing changed. The partition as it was found then or a little later."""

    flags: Values
    rows: Mapping[Key, Values]


APPLIED = Applied()

WriteOutcome = StoreError | None
ChangeOutcome = Applied | Refused | StoreError


class Store(Protocol):
    """Six verbs over partitions of ordered rows. Every list verb may work on its items at the same time.

    A store that has the seventh is a `JoiningStore`.
    """

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        """The spans as they are. Raises `Unavailable` when one of them cannot be read."""
        ...

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        """Writes rows blindly into plain tables; for each item None, or the error it met."""
        ...

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        """Changes conditional tables; for each item `Applied`, `Refused` or the error it met."""
        ...

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        """Empties partitions of either kind of table; for each item None, or the error it met."""
        ...

    async def time_ms(self) -> int:
        """The store's wall clock. Raises `Unavailable`."""
        ...

    async def close(self) -> None:
        """Gives back what the store holds; what was confirmed stays."""
        ...


class Together(NamedTuple):
    """A change, the writes that rest on it, and what is to be read once they are done."""

    change: Change
    writes: Sequence[Write]
    spans: Sequence[Span]


class Joined(NamedTuple):
    outcome: ChangeOutcome
    """Applied: the writes are confirmed too. Refused: none was made."""
    slices: Sequence[Slice] = ()
    """What was read, if it was applied."""


class JoiningStore(Store, Protocol):
    """For stores to which it is one step: puts then cost one."""

    async def together(self, wanted: Together) -> Joined: ...


def joining(store: Store) -> JoiningStore | None:
    """The store with its seventh verb, if it has that. A store around another may or may not, so the attribute says."""
    return cast("JoiningStore", store) if getattr(store, "joins", False) else None
