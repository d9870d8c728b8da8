"""The messages of a databag, from whichever store, as Arrow batches of stored columns: epoch by epoch.

What is known of the epochs is read together with the rows, or after them (R14): of what is being dropped some may be
gone already. So are the locks, which say what of it was given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.marks import QueueGone
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.spark.place import Place

RAW = pa.schema(
    [
        ("number", pa.int64()),
        ("enqueued_at", pa.int64()),
        ("body", pa.binary()),
        ("attributes", pa.string()),
        ("origin", pa.string()),
        ("deleted", pa.int64()),
    ]
)
"""What a store hands over: times in milliseconds. The first two always, as a delete of what never was has no date."""

EPOCHS = ("version", "open", "opened_at", "sealed", "over", "deleted")


class Piece(NamedTuple):
    """One epoch of one block, which is one partition of the store; of that, the ids from the first to the last."""

    block: int
    epoch: int
    first: int
    last: int

    @classmethod
    def whole(cls, block: int, epoch: int) -> Piece:
        low = block * ids.BLOCK_SLICES
        return cls(block, epoch, ids.first_of(low), ids.last_of(low + ids.BLOCK_SLICES - 1))

    @property
    def bucket(self) -> int:
        """The two as one number, which grows with time."""
        return self.epoch * limits.BAG_BLOCKS + self.block

    def may_hold(self, number: int, open_epoch: int) -> bool:
        """`open_epoch`: of the block; an id has an epoch's last bits only."""
        return self.first <= number <= self.last and ids.epoch_of(number, open_epoch) == self.epoch


class LockRow(NamedTuple):
    first: int
    last: int
    serving: int
    served_at: int
    duration: int
    given: bytes

    @property
    def until_ms(self) -> int:
        return self.served_at + self.duration


class Found(NamedTuple):
    piece: Piece
    rows: pa.RecordBatch
    finished_at_ms: int | None
    """Of the epoch, or of one that was finished soon after it."""
    locks: Sequence[LockRow]
    """Of the block, if they were asked for."""


Lost = Callable[[Piece], None]
"""Told that an epoch was dropped. Raises if that must not be."""


def read_pieces(
    place: Place, incarnation: str, pieces: Sequence[Piece], names: Sequence[str], with_locks: bool, lost: Lost
) -> Iterator[Found]:
    """`names`: of `RAW`, in its order."""
    if place.path is not None:
        return _from_file(place.path, incarnation, pieces, names, with_locks, lost)
    return _from_cassandra(place, incarnation, pieces, names, with_locks, lost)


def _schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([RAW.field(name) for name in names])


class _Gone(Exception):
    """Nobody is to read there any more."""


def _finished_at_ms(row: Sequence[Any] | None, piece: Piece) -> int | None:
    """By the block's row, as it is now. Raises `_Gone`."""
    try:
        epochs = epochs_of.parse(dict(zip(EPOCHS, row or (), strict=False)))
    except QueueGone:
        raise _Gone from None
    if not epochs.is_there(piece.epoch):
        raise _Gone
    over = epochs.over_as(piece.epoch)
    return None if over is None else over.at_ms


def _from_file(
    path: str, incarnation: str, pieces: Sequence[Piece], names: Sequence[str], with_locks: bool, lost: Lost
) -> Iterator[Found]:
    """All of it of one instant: it is read in one transaction."""
    from adbc_driver_sqlite import dbapi

    from angelhair.spark.reading.sqlite import BATCH_ROWS, NO_MESSAGE, TYPED, check_alone
    from angelhair.stores.sqlite.layout import KEY, PARTITION, quoted

    check_alone(path)
    # The driver takes a column's type from what it meets first: that is a row of ours, which is taken off again.
    first_row = ",".join(str(NO_MESSAGE) if name == "number" else TYPED[RAW.field(name).type] for name in names)
    columns = ",".join(KEY if name == "number" else quoted(name) for name in names)
    statement = (
        f"SELECT {first_row} UNION ALL SELECT {columns} FROM bag_messages "
        f"WHERE {PARTITION}=? AND {KEY} BETWEEN ? AND ? AND {quoted('enqueued_at')} IS NOT NULL"
    )
    with dbapi.connect(f"file:{quote(path)}?mode=ro") as connection:

        def all_of(table: str, names: Sequence[str], partition: str) -> list[tuple[Any, ...]]:
            with connection.cursor() as cursor:
                selected = ",".join((KEY, *map(quoted, names)))
                cursor.execute(f"SELECT {selected} FROM {table} WHERE {PARTITION}=?", [partition])
                return list(cursor.fetchall())

        epochs = {row[0]: row[1:] for row in all_of("bag_epochs", EPOCHS, places.bag_epochs(incarnation).key)}
        locks: dict[int, list[LockRow]] = {}
        for piece in pieces:
            try:
                finished_at_ms = _finished_at_ms(epochs.get(piece.block), piece)
            except _Gone:
                lost(piece)
                continue
            if with_locks and piece.block not in locks:
                found = all_of("bag_locks", LockRow._fields[1:], places.bag_locks(incarnation, piece.block).key)
                locks[piece.block] = [LockRow(*row) for row in found]
            with connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
                partition = places.bag_messages(incarnation, piece.block, piece.epoch).key
                cursor.execute(statement, [partition, piece.first, piece.last])
                for batch in cursor.fetch_record_batch():
                    rows = batch.slice(1) if batch.num_rows and batch.column(0)[0].as_py() == NO_MESSAGE else batch
                    if rows.num_rows:
                        arrow = pa.RecordBatch.from_arrays(rows.columns, schema=_schema(names))
                        yield Found(piece, arrow, finished_at_ms, locks.get(piece.block, ()))


def _from_cassandra(
    place: Place, incarnation: str, pieces: Sequence[Piece], names: Sequence[str], with_locks: bool, lost: Lost
) -> Iterator[Found]:
    from angelhair.spark.reading.cassandra import BUCKETS_AHEAD, and_the_rest, ask, session_of

    session, schema = session_of(place), _schema(names)
    asked_for = and_the_rest(BAG_MESSAGES, names)
    columns = ", ".join("key" if name == "number" else f'"{name}"' for name in asked_for)
    select_rows = f"SELECT {columns} FROM bag_messages WHERE partition = ? AND key >= ? AND key <= ?"
    select_epochs = f"SELECT {_quoted(EPOCHS)} FROM bag_epochs WHERE partition = ? AND key = ?"
    select_locks = f"SELECT key, {_quoted(LockRow._fields[1:])} FROM bag_locks WHERE partition = ?"
    locks: dict[int, list[LockRow]] = {}

    def ask_for(piece: Piece) -> Any:
        partition = places.bag_messages(incarnation, piece.block, piece.epoch).key
        return piece, ask(session, select_rows, (partition, piece.first, piece.last))

    left = iter(pieces)
    asked = deque(ask_for(piece) for piece in islice(left, BUCKETS_AHEAD))
    while asked:
        piece, answer = asked.popleft()
        if with_locks and piece.block not in locks:
            found = ask(session, select_locks, (places.bag_locks(incarnation, piece.block).key,)).result()
            # A block whose locks have flags and no rows answers with one row that has no key.
            locks[piece.block] = [LockRow(*row) for row in found if row[0] is not None]
        pages = answer.result()
        asked.extend(ask_for(following) for following in islice(left, 1))
        while True:
            rows = [row for row in pages.current_rows if row[1] is not None]
            # Only now that the rows are here, and answered while they are turned into Arrow.
            epochs = ask(session, select_epochs, (places.bag_epochs(incarnation).key, piece.block))
            values = zip(*rows, strict=True) if rows else [()] * len(names)
            arrays = [pa.array(some, field.type) for some, field in zip(values, schema, strict=False)]
            try:
                finished_at_ms = _finished_at_ms(epochs.result().one(), piece)
            except _Gone:
                lost(piece)
                break
            if rows:
                arrow = pa.RecordBatch.from_arrays(arrays, schema=schema)
                yield Found(piece, arrow, finished_at_ms, locks.get(piece.block, ()))
            if not pages.has_more_pages:
                break
            pages.fetch_next_page()


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
