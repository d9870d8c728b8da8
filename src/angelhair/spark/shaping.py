"""From what a store hands over to the columns that were asked for: one logic for every store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql.types import VariantVal

from angelhair.engine.packed import LENGTH_BITS, Packed
from angelhair.errors import InvalidRequest
from angelhair.spark.columns import (
    BINARY,
    DELAYED,
    EXPIRED,
    IN_FLIGHT,
    LAKE,
    PURGED,
    QUEUE,
    STRING,
    TIME,
    VARIANT_FIELDS,
    WAITING,
    arrow_schema_of,
)

TIMES = {
    "enqueued_at": "enqueued_at",
    "due_at": "visible_from",
    "due": "visible_from",
    "first_delivered_at": "first_delivered_at",
    "visible_at": "visible_at",
    "settled_at": "settled_at",
}
"""Columns that are times, and where they are stored."""

SAME = {"attributes": "attributes", "origin": "origin", "moved_to": "moving_to"}
"""Columns that are what is stored."""


class Lane(NamedTuple):
    """As much of a lane as its rows need to be understood."""

    number: int
    bucket_size: int
    purged: int
    """Ids below were purged."""
    retention_ms: int | None
    now_ms: int
    """When the states are told; the same for all partitions of a read."""


def shaped(raw: pa.RecordBatch, names: Sequence[str], payload: str, lane: Lane) -> pa.RecordBatch:
    schema = arrow_schema_of(names, payload)
    return pa.RecordBatch.from_arrays([_column(raw, name, payload, lane) for name in names], schema=schema)


def as_asked(kept: pa.RecordBatch, names: Sequence[str], payload: str, lane: int) -> pa.RecordBatch:
    """What a lake keeps is shaped already. A column that is newer than the file is null in it."""
    schema = arrow_schema_of(names, payload)
    return pa.RecordBatch.from_arrays([_kept(kept, schema.field(name), payload, lane) for name in names], schema=schema)


def _kept(kept: pa.RecordBatch, field: pa.Field, payload: str, lane: int) -> pa.Array:
    if field.name == "kept_in":
        return pa.repeat(pa.scalar(LAKE, pa.string()), len(kept))
    if field.name == "lane":
        return pa.repeat(pa.scalar(lane, pa.int32()), len(kept))
    if field.name not in kept.schema.names:
        return pa.nulls(len(kept), field.type)
    if field.name == "body":
        return payload_of(kept.column("body").cast(pa.binary()), payload)
    return kept.column(field.name).cast(field.type)


def between_times(raw: pa.RecordBatch, first_ms: int | None, end_ms: int | None) -> pa.RecordBatch:
    """What was put from the first time on and before the end."""
    if first_ms is not None:
        raw = raw.filter(pc.greater_equal(raw.column("enqueued_at"), first_ms))
    if end_ms is not None:
        raw = raw.filter(pc.less(raw.column("enqueued_at"), end_ms))
    return raw


def _column(raw: pa.RecordBatch, name: str, payload: str, lane: Lane) -> pa.Array:
    numbers = raw.column("number")
    if name in TIMES:
        return pc.multiply(raw.column(TIMES[name]), 1000).cast(TIME)
    if name in SAME:
        return raw.column(SAME[name])
    if name == "number":
        return numbers
    if name == "lane":
        return pa.repeat(pa.scalar(lane.number, pa.int32()), len(raw))
    if name == "bucket":
        return pc.divide(numbers, lane.bucket_size)
    if name == "id":
        return pc.binary_join_element_wise(str(lane.number), numbers.cast(pa.string()), "-")
    if name == "deliveries":
        return pc.fill_null(raw.column("delivery"), 0).cast(pa.int32())
    if name == "body":
        return payload_of(bodies_of(raw), payload)
    if name == "kept_in":
        return pa.repeat(pa.scalar(QUEUE, pa.string()), len(raw))
    return _state(raw, lane)


def bodies_of(raw: pa.RecordBatch) -> pa.Array:
    """What each message says by now."""
    changed, bodies = raw.column("changed_body"), raw.column("body")
    return bodies if changed.null_count == len(changed) else pc.coalesce(changed, bodies)


def bytes_of(bodies: pa.Array) -> memoryview:
    """All bodies, one behind the other, as they lie in memory."""
    data, ends = _as_they_lie(bodies)
    return data[ends[0] : ends[-1]]


def packed(bodies: pa.Array) -> Packed:
    """Bodies as they lie in memory, of which none is null."""
    data, ends = _as_they_lie(bodies)
    lengths = np.diff(ends)
    pieces = (ends[:-1].astype(np.int64) << LENGTH_BITS) | lengths
    return Packed(data, pieces.data, int(lengths.max(initial=0)))


def _as_they_lie(bodies: pa.Array) -> tuple[memoryview, npt.NDArray[np.int32]]:
    """What holds them, and where in it each ends; before the first end, where the first begins."""
    there = (pc.fill_null(bodies, b"") if bodies.null_count else bodies).cast(pa.binary())
    _, offsets, data = there.buffers()
    return memoryview(data), np.frombuffer(offsets, dtype=np.int32)[there.offset : there.offset + len(there) + 1]


def payload_of(bodies: pa.Array, payload: str) -> pa.Array:
    if payload == BINARY:
        return bodies
    if payload != STRING:
        return _variants(bodies)
    try:
        return bodies.cast(pa.string())
    except pa.ArrowInvalid:
        raise InvalidRequest(
            "payload", "a body is not UTF-8, so it is no string; payload=binary takes every body"
        ) from None


def _variants(bodies: pa.Array) -> pa.Array:
    parsed = [_variant(body) for body in bodies.to_pylist()]
    parts = [
        pa.array([b"" if variant is None else getattr(variant, part.name) for variant in parsed], part.type)
        for part in VARIANT_FIELDS
    ]
    return pa.StructArray.from_arrays(
        parts, fields=VARIANT_FIELDS, mask=pa.array([variant is None for variant in parsed], pa.bool_())
    )


def _variant(body: bytes | None) -> VariantVal | None:
    """None for what is no JSON, or too deep or too large for a variant; and for what was erased from a lake."""
    if body is None:
        return None
    try:
        text = body.decode()
        if "NaN" in text or "Infinity" in text:
            json.loads(text, parse_constant=_no_json)
        return VariantVal.parseJson(text)
    except (ValueError, RecursionError, PySparkException):
        return None


def _no_json(constant: str) -> None:
    """Python takes these numbers; JSON has none of them."""
    raise ValueError(constant)


def _state(raw: pa.RecordBatch, lane: Lane) -> pa.Array:
    """What a consumer would find now. Whoever is settled is what he was settled as, whatever the time."""
    delivered = pc.greater(pc.fill_null(raw.column("delivery"), 0), 0)
    hidden = pc.greater(pc.fill_null(raw.column("visible_at"), 0), lane.now_ms)
    delayed = pc.greater(pc.fill_null(raw.column("visible_from"), 0), lane.now_ms)
    words = pc.if_else(
        delivered,
        pc.if_else(hidden, IN_FLIGHT, WAITING),
        pc.if_else(pc.or_(delayed, hidden), DELAYED, WAITING),
    )
    if lane.retention_ms is not None:
        since = pc.max_element_wise(raw.column("enqueued_at"), raw.column("visible_from"))
        over = pc.less_equal(since, lane.now_ms - lane.retention_ms)
        words = pc.if_else(pc.fill_null(over, fill_value=False), EXPIRED, words)
    words = pc.if_else(pc.less(raw.column("number"), lane.purged), PURGED, words)
    return pc.coalesce(raw.column("settled"), words)
