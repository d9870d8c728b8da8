"""From Cassandra: the two partitions of a bucket are read at the same time, some buckets ahead, and joined by id.

A task reads the store directly, by the store's own credentials. Its connection stays open for the next task of the same
Python process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
from cassandra.cluster import ResponseFuture, Session
from cassandra.query import PreparedStatement

from angelhair.engine import places
from angelhair.engine.schema import BODIES, BODY_DATES
from angelhair.engine.store import Table
from angelhair.spark.columns import RAW, STATE_COLUMNS
from angelhair.spark.place import Place
from angelhair.spark.planning import Run
from angelhair.spark.reading.joining import joined
from angelhair.stores.cassandra.connect import connected
from angelhair.stores.cassandra.store import READ

BUCKETS_AHEAD = 3
"""Buckets that are asked for while one is being turned into Arrow."""

PAGE_ROWS = 5_000

MARK = "SELECT value FROM pointers WHERE partition = ? AND key = ?"


class _Asked(NamedTuple):
    bucket: int
    bodies: ResponseFuture
    states: ResponseFuture | None


def read(
    place: Place, incarnation: str, bucket_size: int, run: Run, names: Sequence[str], lost: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    """One batch a bucket. The floor is read after each (R14): a bucket below it may have been half gone."""
    session = session_of(place)
    body_names = tuple(name for name in names if name not in STATE_COLUMNS)
    state_names = tuple(name for name in names if name in STATE_COLUMNS)
    pointers = places.pointers(incarnation, run.lane).key

    def ask_for(bucket: int) -> _Asked:
        first, end = max(run.first, bucket * bucket_size), min(run.end, (bucket + 1) * bucket_size)
        key = places.bodies(incarnation, run.lane, bucket).key
        bodies = ask(session, _select("bodies", and_the_rest(BODIES, body_names)), (key, first, end))
        states = ask(session, _select("states", state_names), (key, first, end)) if state_names else None
        return _Asked(bucket, bodies, states)

    buckets = iter(run.buckets(bucket_size))
    asked = deque(ask_for(bucket) for bucket in islice(buckets, BUCKETS_AHEAD))
    while asked:
        bucket, *answers = asked.popleft()
        found = [answer.result().all() for answer in answers if answer is not None]
        # Only now that all rows are here, and answered while they are turned into Arrow.
        floor_asked = ask(session, MARK, (pointers, "floor"))
        for following in islice(buckets, 1):
            asked.append(ask_for(following))
        batch = _arrow(found[0], body_names)
        if state_names:
            batch = joined(batch, _arrow(found[1], ("number", *state_names)), names)
        floor = _value(floor_asked)
        if bucket < floor:
            lost(floor)
        elif batch.num_rows:
            yield batch


def ask(session: Session, statement: str, parameters: tuple[Any, ...]) -> ResponseFuture:
    bound = _prepared(session, statement).bind(parameters)
    bound.fetch_size = PAGE_ROWS
    return session.execute_async(bound, execution_profile=READ)


def and_the_rest(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """What is asked for to read these columns of rows that may not be confirmed yet. Cassandra gives the other replicas
    what somebody reads of such a row, and the engine takes one that has its body for whole, and one that has a date for
    one that has all of them."""
    reads_bodies = any(table.columns.get(name) is bytes for name in names)
    rest = table.columns if reads_bodies else BODY_DATES if table is BODIES else ()
    return (*names, *(name for name in rest if name not in names))


def _select(table: str, names: Sequence[str]) -> str:
    columns = ["key", *('"body"' if name == "changed_body" else f'"{name}"' for name in names if name != "number")]
    return f"SELECT {', '.join(columns)} FROM {table} WHERE partition = ? AND key >= ? AND key < ?"


def _arrow(found: Sequence[tuple[Any, ...]], names: Sequence[str]) -> pa.RecordBatch:
    # A partition with flags and without rows answers with one row that has no key.
    rows = [] if len(found) == 1 and found[0][0] is None else found
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    schema = pa.schema([RAW.field(name) for name in names])
    # More may have been read than is wanted: that comes last.
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=False)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def purged_below(place: Place, incarnation: str, lane: int) -> int:
    return _mark(session_of(place), places.pointers(incarnation, lane).key, "purged")


def _mark(session: Session, partition: str, name: str) -> int:
    return _value(ask(session, MARK, (partition, name)))


def _value(answer: ResponseFuture) -> int:
    row = answer.result().one()
    return 0 if row is None or row[0] is None else int(row[0])


@lru_cache
def session_of(place: Place) -> Session:
    session: Session = asyncio.run(connected(place.cassandra_settings()))
    session.set_keyspace(place.cassandra.keyspace)
    return session


@lru_cache
def _prepared(session: Session, statement: str) -> PreparedStatement:
    return session.prepare(statement)
