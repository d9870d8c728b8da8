"""From Arrow batches to blocks of messages. The same rows make the same blocks, however Spark cuts its batches: a try
that goes on with another's must put the same messages under the same ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from angelhair.engine.runs import Bodies
from angelhair.errors import InvalidRequest
from angelhair.model import BUCKETED, FIFO, NewMessage
from angelhair.spark.shaping import bytes_of, packed

NUMBER = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DecimalType)

DIGEST_DIGITS = 32
"""As much of a digest as a row of the ledger keeps."""

WRITTEN: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "body": ((BinaryType, StringType), "What is put. Needed, and never null."),
    "attributes": ((StringType,), "What comes with it, as JSON; or null."),
    "key": (
        (StringType,),
        "An idempotency key: within the queue's `dedup_window`, rows with one key are one message. In a fifo queue it "
        "is the de-duplication id.",
    ),
    "group": (
        (StringType,),
        "Of a fifo queue, which needs it, and never null: the message group, whose order rows keep. No other takes it.",
    ),
    "delay": (NUMBER, "Seconds before it can be received; null takes the queue's own delay."),
    "due_at": ((TimestampType,), "When it can be received; the past means now. Not with `delay`."),
}
"""Columns of a row that is written: their types, and what they are."""


_NOT_TAKEN = {
    BUCKETED: {"group": "only fifo queues keep the order of groups"},
    FIFO: dict.fromkeys(("delay", "due_at"), "a fifo queue has one delay for all of its messages"),
}


def written_to(kind: str) -> list[str]:
    """Columns that a queue of this kind takes."""
    return [name for name in WRITTEN if name not in _NOT_TAKEN.get(kind, {})]


def checked(schema: StructType) -> None:
    """Raises `InvalidRequest` for a column that nobody would write."""
    for field in schema:
        if field.name not in WRITTEN:
            raise InvalidRequest(
                "columns", f"{field.name!r} is none that can be written; there are {', '.join(WRITTEN)}"
            )
        types, _ = WRITTEN[field.name]
        if not isinstance(field.dataType, types):
            wanted = " or ".join(dict.fromkeys(kind.typeName() for kind in types))
            raise InvalidRequest("columns", f"{field.name} is {field.dataType.simpleString()}, and {wanted} is wanted")
    if "body" not in schema.names:
        raise InvalidRequest("columns", "there is no `body`: what is to be put?")
    if {"delay", "due_at"} <= set(schema.names):
        raise InvalidRequest("columns", "`delay` and `due_at` cannot both be given")


class Block:
    """Rows that are put together, under one row of the ledger."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._columns = {name: _plain(name, rows.column(name)) for name in rows.schema.names}
        self.messages = rows.num_rows
        self.digest = self._digest_with(rows.column("body"))

    def _digest_with(self, bodies: pa.Array) -> str:
        # Most processors have it in silicon.
        found = hashlib.sha256()
        found.update(pc.binary_length(bodies).to_numpy().astype("<i8"))
        found.update(bytes_of(bodies))
        for name in sorted(self._columns.keys() - {"body"}):
            found.update(repr((name, self._columns[name])).encode())
        return found.hexdigest()[:DIGEST_DIGITS]

    def as_messages(self, enqueued_at_ms: int) -> Sequence[NewMessage]:
        """`enqueued_at_ms`: from when on delays count."""
        if set(self._columns) == {"body"}:
            return Bodies(self._columns["body"])
        return [
            NewMessage(body, attributes, delay, key, None, group)
            for body, attributes, delay, key, group in zip(
                self._columns["body"], self._or_none("attributes"), self._delays(enqueued_at_ms), self._or_none("key"),
                self._or_none("group"), strict=True,
            )
        ]

    def check_for(self, kind: str) -> None:
        """Raises `InvalidRequest` for rows that a queue of this kind does not take."""
        for name in self._columns:
            if why := _NOT_TAKEN.get(kind, {}).get(name):
                raise InvalidRequest("columns", f"`{name}` is none that this queue takes: {why}")
        if kind == FIFO and "group" not in self._columns:
            raise InvalidRequest("columns", "there is no `group`, which a fifo queue needs: whose order do rows keep?")
        if None in self._columns.get("group", ()):
            raise InvalidRequest("group", "is null in a row: in a fifo queue every message has one")

    def key_of(self, offset: int) -> str:
        return str(self._columns["key"][offset])

    def _or_none(self, name: str) -> Sequence[Any]:
        return self._columns.get(name) or [None] * self.messages

    def _delays(self, enqueued_at_ms: int) -> Sequence[int | None]:
        if "due_at" in self._columns:
            return [None if due is None else max(0, due - enqueued_at_ms) for due in self._columns["due_at"]]
        return [None if delay is None else round(delay * 1000) for delay in self._or_none("delay")]


def blocks(batches: Iterator[pa.RecordBatch], most_messages: int, most_bytes: int) -> Iterator[Block]:
    """As many rows as fit: the next block begins with the row that does not."""
    waiting: list[pa.RecordBatch] = []
    messages = total_bytes = 0
    for batch in batches:
        sizes = np.cumsum(pc.fill_null(pc.binary_length(batch.column("body")), 0).to_numpy(zero_copy_only=False))
        begin = 0
        while begin < batch.num_rows:
            before = int(sizes[begin - 1]) if begin else 0
            fits = int(np.searchsorted(sizes, before + most_bytes - total_bytes, side="right"))
            end = min(max(fits, begin + 1 if not messages else begin), begin + most_messages - messages, batch.num_rows)
            if end > begin:
                waiting.append(batch.slice(begin, end - begin))
                messages += end - begin
                total_bytes += int(sizes[end - 1]) - before
                begin = end
            if begin < batch.num_rows or messages == most_messages:
                yield Block(_together(waiting))
                waiting, messages, total_bytes = [], 0, 0
    if waiting:
        yield Block(_together(waiting))


def _together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _plain(name: str, column: pa.Array) -> Sequence[Any]:
    if name == "body":
        if column.null_count:
            raise InvalidRequest("body", "is null in a row: a message has a body, if an empty one")
        return packed(column)
    if name == "due_at":
        column = pc.divide(column.cast(pa.int64()), 1000)
    elif name == "delay":
        column = column.cast(pa.float64())
        # Without any number it is neither true nor false.
        if pc.all(pc.is_finite(column)).as_py() is False:
            raise InvalidRequest("delay", "is infinite or no number in a row")
    values: list[Any] = column.to_pylist()
    return values
