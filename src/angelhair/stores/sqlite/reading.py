"""Reading rows, for whoever holds a connection: the reader on the event loop, and the writer inside a transaction."""

from __future__ import annotations

from itertools import repeat
from operator import itemgetter
from typing import Any

import apsw

from angelhair.engine.store import Key, Partition, Row, Slice, Span, Value, Values
from angelhair.stores.sqlite import statements

NO_LIMIT = -1

_KEY = itemgetter(-1)
"""The key is the last column of a record."""


def page(connection: apsw.Connection, span: Span, after: Key | None, limit: int, now_ms: int) -> list[Row]:
    """Rows of a span from its beginning, or behind a key."""
    table, partition = span.partition
    columns = tuple(table.columns) if span.columns is None else span.columns
    if after is not None:
        comparison, start = ">", after
    elif span.first is not None:
        comparison, start = ">=", span.first
    else:
        comparison, start = "", None
    parameters: list[Value] = [partition]
    if start is not None:
        parameters.append(start)
    if span.last is not None:
        parameters.append(span.last)
    parameters += (now_ms, limit)
    statement = statements.span(table, columns, comparison, span.last is not None)
    found: list[Any] = connection.execute(statement, parameters).fetchall()
    # Not a loop over rows: reading is most of what the event loop does for the store, and this takes a third less.
    values = map(dict, map(zip, repeat(columns), found))
    return list(map(tuple.__new__, repeat(Row), zip(map(_KEY, found), values, strict=True)))


def flags(connection: apsw.Connection, partition: Partition) -> Values:
    table = partition.table
    if not table.flags:
        return {}
    found = connection.execute(statements.flags(table), (partition.key,)).fetchone()
    return {} if found is None else dict(zip(table.flags, found, strict=True))


def whole(connection: apsw.Connection, span: Span, now_ms: int) -> Slice:
    """All of a span at once, inside a transaction."""
    rows = page(connection, span, None, NO_LIMIT if span.limit is None else span.limit, now_ms)
    return Slice(flags(connection, span.partition), rows, len(rows) == span.limit)
