"""What the tests of the contract share. Each test works in partitions of its own, so one store serves them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import uuid4

from angelhair.engine.schema import BAG_LOCKS, BODIES, QUEUES, STATES, WAKES
from angelhair.engine.store import (
    APPLIED,
    Change,
    Key,
    Partition,
    Refused,
    Row,
    RowChange,
    Slice,
    Span,
    Store,
    Table,
    Value,
    Values,
    Write,
)

PLAIN = BODIES
"""Blind rows under integer keys: body is bytes, attributes a string, enqueued_at and visible_from integers."""

PLAIN_BY_NAME = WAKES
"""Blind rows under string keys: patience is an integer."""

GUARDED = STATES
"""Conditional rows under integer keys, with flags: delivery, revision are integers, claim a string, body bytes."""

SMALL = BAG_LOCKS
"""Conditional rows under integer keys, with flags, read at once: serving is an integer, given bytes, version a flag."""

GUARDED_BY_NAME = QUEUES
"""Conditional rows under string keys: secret is bytes, settings a string, version an integer."""

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1


def fresh(table: Table) -> Partition:
    return Partition(table, f"contract-{uuid4().hex}")


def seen(values: Values) -> dict[str, Value]:
    """What is set. A store may leave out the columns that are None, or give them as None."""
    return {column: value for column, value in values.items() if value is not None}


def rows_of(found: Slice) -> list[tuple[Key, dict[str, Value]]]:
    return [(row.key, seen(row.values)) for row in found.rows]


def keys_of(found: Slice) -> list[Key]:
    return [row.key for row in found.rows]


async def read(store: Store, span: Span) -> Slice:
    (found,) = await store.read([span])
    return found


async def all_rows(store: Store, partition: Partition) -> dict[Key, dict[str, Value]]:
    return dict(rows_of(await read(store, Span(partition))))


async def flags(store: Store, partition: Partition) -> dict[str, Value]:
    return seen((await read(store, Span(partition))).flags)


async def write(
    store: Store, partition: Partition, rows: Mapping[Key, Values] | Sequence[Row], ttl_seconds: int | None = None
) -> None:
    listed = [Row(key, values) for key, values in rows.items()] if isinstance(rows, Mapping) else rows
    assert await store.write([Write(partition, listed, ttl_seconds)]) == [None]


async def applied(store: Store, change: Change) -> None:
    assert await store.change([change]) == [APPLIED]


async def refused(store: Store, change: Change) -> Refused:
    (outcome,) = await store.change([change])
    assert isinstance(outcome, Refused)
    return outcome


async def insert(store: Store, partition: Partition, rows: Mapping[Key, Values]) -> None:
    await applied(store, Change(partition, [RowChange(key, {}, values) for key, values in rows.items()]))
