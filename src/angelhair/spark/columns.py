"""The table that a queue is: its columns, their types in Spark and in Arrow, and what has to be read for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from angelhair.errors import InvalidRequest

TIME = pa.timestamp("us", tz="UTC")

WAITING, DELAYED, IN_FLIGHT, ACKED, MOVING, EXPIRED, PURGED = (
    "waiting", "delayed", "in flight", "acked", "moving", "expired", "purged"
)
"""States of a message. One that has been moved to another queue has the word for why, such as `dead`."""


class Column(NamedTuple):
    name: str
    spark: DataType
    arrow: pa.DataType
    raw: frozenset[str]
    """The stored columns that it is made of."""
    says: str


def _column(name: str, spark: DataType, arrow: pa.DataType, raw: str, says: str) -> Column:
    return Column(name, spark, arrow, frozenset(raw.split()), says)


COLUMNS = {
    column.name: column
    for column in (
        _column("id", StringType(), pa.string(), "number", "The message's id, as the doors say it: lane and number."),
        _column("lane", IntegerType(), pa.int32(), "number", "The lane that it is in."),
        _column("number", LongType(), pa.int64(), "number", "Its number in the lane; grows by one."),
        _column("bucket", LongType(), pa.int64(), "number", "The bucket that it is in."),
        _column(
            "body", BinaryType(), pa.binary(), "body changed_body erased_at", "What was put, or what it was changed to."
        ),
        _column("attributes", StringType(), pa.string(), "attributes erased_at", "What came with it, as JSON."),
        _column("origin", StringType(), pa.string(), "origin erased_at", "Where it was before it was moved here."),
        _column("enqueued_at", TimestampType(), TIME, "enqueued_at", "When it was put."),
        _column("due_at", TimestampType(), TIME, "visible_from", "When its delay ends; null without one."),
        _column("first_delivered_at", TimestampType(), TIME, "first_delivered_at", "When it was first received."),
        _column("visible_at", TimestampType(), TIME, "visible_at", "When it comes again unless it is acked."),
        _column("settled_at", TimestampType(), TIME, "settled_at", "When it was acked or moved."),
        _column("deliveries", IntegerType(), pa.int32(), "delivery", "How often it has been received."),
        _column(
            "state", StringType(), pa.string(),
            "number settled delivery visible_at visible_from enqueued_at",
            f"What became of it: {', '.join((WAITING, DELAYED, IN_FLIGHT, ACKED, MOVING, EXPIRED, PURGED))}, dead, "
            "erased, or void (it goes by another id).",
        ),
        _column("moved_to", StringType(), pa.string(), "moving_to", "Where it has been moved, or is being moved."),
    )
}

QUEUE, LAKE = "queue", "lake"

KEPT_IN = Column("kept_in", StringType(), pa.string(), frozenset(), "Where it was read from: queue or lake.")

DUE = Column(
    "due", TimestampType(), TIME, frozenset(["visible_from"]),
    "When its producer wanted it to come; of a timeline that may be earlier than `due_at`.",
)

READ_COLUMNS = {**COLUMNS, KEPT_IN.name: KEPT_IN, DUE.name: DUE}
"""Every column that can be asked for. The last two say nothing new of a bucketed queue's message, so that they are not
kept in a lake."""

BINARY, STRING, VARIANT = "binary", "string", "variant"
PAYLOADS = (BINARY, STRING, VARIANT)
"""What a body can be made to be."""

VARIANT_FIELDS = [
    pa.field("value", pa.binary(), nullable=False),
    pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
]
"""How Spark's VariantType travels in Arrow: a structure that is told apart by the mark on its second field."""

_BODIES: dict[str, tuple[DataType, pa.DataType]] = {
    BINARY: (BinaryType(), pa.binary()),
    STRING: (StringType(), pa.string()),
    VARIANT: (VariantType(), pa.struct(VARIANT_FIELDS)),
}

STATE_COLUMNS = frozenset(
    (
        "delivery", "visible_at", "first_delivered_at", "settled", "settled_at", "moving_to", "changed_body",
        "erased_at",
    )
)
"""Stored columns that are kept beside the bodies: without any of these there is nothing to join."""

RAW = pa.schema(
    [
        ("number", pa.int64()),
        ("body", pa.binary()),
        ("attributes", pa.string()),
        ("enqueued_at", pa.int64()),
        ("visible_from", pa.int64()),
        ("origin", pa.string()),
        ("delivery", pa.int64()),
        ("visible_at", pa.int64()),
        ("first_delivered_at", pa.int64()),
        ("settled", pa.string()),
        ("settled_at", pa.int64()),
        ("moving_to", pa.string()),
        ("changed_body", pa.binary()),
        ("erased_at", pa.int64()),
    ]
)
"""What a store hands over, whichever it is: times in milliseconds, as they are stored."""


def schema_of(names: Sequence[str], payload: str) -> StructType:
    return StructType([StructField(name, _types_of(name, payload)[0], nullable=True) for name in names])


def arrow_schema_of(names: Sequence[str], payload: str) -> pa.Schema:
    return pa.schema([(name, _types_of(name, payload)[1]) for name in names])


def checked_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    for name in names:
        if name not in READ_COLUMNS:
            raise InvalidRequest(where, f"{name!r} is no column of a queue; there are {', '.join(READ_COLUMNS)}")
    return tuple(dict.fromkeys(names))


def raw_names(names: Sequence[str]) -> tuple[str, ...]:
    """The stored columns that these are made of; the number always, as rows are told apart by it."""
    wanted = frozenset({"number"}).union(*(READ_COLUMNS[name].raw for name in names))
    return tuple(name for name in RAW.names if name in wanted)


def _types_of(name: str, payload: str) -> tuple[DataType, pa.DataType]:
    """In Spark and in Arrow."""
    return _BODIES[payload] if name == "body" else (READ_COLUMNS[name].spark, READ_COLUMNS[name].arrow)
