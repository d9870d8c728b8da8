"""The CQL that this store speaks: one prepared statement per shape of request, prepared when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import NamedTuple

from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from angelhair.engine.store import Table
from angelhair.stores.cassandra.errors import NotPrepared
from angelhair.stores.cassandra.layout import WRITTEN

Names = tuple[str, ...]


class Select(NamedTuple):
    """Parameters: partition, then first, last, the list of keys and the limit, as far as they are there."""

    table: Table
    columns: Names
    restriction: str
    """One of "", "exact", "from", "to", "between", "named"."""
    limited: bool

    def text(self, keyspace: str) -> str:
        names = ("key", *self.columns, *self.table.flags)
        where = {
            "": "",
            "exact": ' AND "key" = ?',
            "from": ' AND "key" >= ?',
            "to": ' AND "key" <= ?',
            "between": ' AND "key" >= ? AND "key" <= ?',
            "named": ' AND "key" IN ?',
        }[self.restriction]
        limit = " LIMIT ?" if self.limited else ""
        return f'SELECT {_list(names)} FROM {_table(keyspace, self.table)} WHERE "partition" = ?{where}{limit}'


class Put(NamedTuple):
    """A blind write of one row. Parameters: TTL if there is one, the columns' values, partition, key."""

    table: Table
    columns: Names
    with_ttl: bool
    marks: bool
    """Also sets the partition's static `written`."""

    def text(self, keyspace: str) -> str:
        # UPDATE, not INSERT: an INSERT would leave a row marker, and a row whose columns are all unset would stay.
        mark = f', "{WRITTEN}" = true' if self.marks else ""
        return (
            f"UPDATE {_table(keyspace, self.table)}{_ttl(self.with_ttl)} SET {_assignments(self.columns)}{mark} "
            f'WHERE "partition" = ? AND "key" = ?'
        )


class UpdateRow(NamedTuple):
    """Parameters: TTL if there is one, values to set, partition, key, expected values (flags after columns)."""

    table: Table
    columns: Names
    expected: Names
    with_ttl: bool

    def text(self, keyspace: str) -> str:
        return (
            f"UPDATE {_table(keyspace, self.table)}{_ttl(self.with_ttl)} SET {_assignments(self.columns)} "
            f'WHERE "partition" = ? AND "key" = ?{_conditions(self.expected)}'
        )


class DeleteRow(NamedTuple):
    """Parameters: partition, key, expected values."""

    table: Table
    expected: Names

    def text(self, keyspace: str) -> str:
        where = f'WHERE "partition" = ? AND "key" = ?{_conditions(self.expected)}'
        return f"DELETE FROM {_table(keyspace, self.table)} {where}"


class UpdateFlags(NamedTuple):
    """Parameters: values to set, partition, expected values."""

    table: Table
    flags: Names
    expected: Names

    def text(self, keyspace: str) -> str:
        return (
            f"UPDATE {_table(keyspace, self.table)} SET {_assignments(self.flags)} "
            f'WHERE "partition" = ?{_conditions(self.expected)}'
        )


class NewestWriteTime(NamedTuple):
    """The newest write time of all rows and flags of a partition, column by column. Parameter: partition."""

    table: Table
    columns: Names

    def text(self, keyspace: str) -> str:
        times = ", ".join(f'MAX(WRITETIME("{name}"))' for name in self.columns)
        return f'SELECT {times} FROM {_table(keyspace, self.table)} WHERE "partition" = ?'


class MarkedWriteTime(NamedTuple):
    """The write time of a plain partition's mark. Parameter: partition."""

    table: Table

    def text(self, keyspace: str) -> str:
        return f'SELECT DISTINCT "partition", WRITETIME("{WRITTEN}") FROM {_table(keyspace, self.table)} ' \
               f'WHERE "partition" = ?'


class Drop(NamedTuple):
    """Parameters: timestamp in microseconds, partition."""

    table: Table

    def text(self, keyspace: str) -> str:
        return f'DELETE FROM {_table(keyspace, self.table)} USING TIMESTAMP ? WHERE "partition" = ?'


class Time(NamedTuple):
    """The coordinator's clock. No parameters."""

    def text(self, keyspace: str) -> str:
        return "SELECT toUnixTimestamp(now()) FROM system.local"


Shape = Select | Put | UpdateRow | DeleteRow | UpdateFlags | NewestWriteTime | MarkedWriteTime | Drop | Time


class Statements:
    """The prepared statements of one session, by shape."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self._session = session
        self._keyspace = keyspace
        self._prepared: dict[Hashable, PreparedStatement] = {}
        self._under_way: dict[Hashable, asyncio.Task[PreparedStatement]] = {}

    async def get(self, shape: Shape) -> PreparedStatement:
        """Raises `NotPrepared`."""
        # The class is part of the key: named tuples of different classes are equal when their fields are.
        key = (type(shape), shape)
        prepared = self._prepared.get(key)
        if prepared is None:
            task = self._under_way.get(key)
            if task is None:
                task = asyncio.create_task(self._prepare(key, shape))
                self._under_way[key] = task
            # Shielded: one waiter that is cancelled must not take the statement from the others.
            prepared = await asyncio.shield(task)
        return prepared

    async def _prepare(self, key: Hashable, shape: Shape) -> PreparedStatement:
        text = shape.text(self._keyspace)
        try:
            prepared = await asyncio.to_thread(self._session.prepare, text)
        except Exception as error:
            raise NotPrepared(error) from error
        else:
            self._prepared[key] = prepared
            return prepared
        finally:
            del self._under_way[key]


def _table(keyspace: str, table: Table) -> str:
    return f'"{keyspace}"."{table.name}"'


def _list(names: Names) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _assignments(names: Names) -> str:
    return ", ".join(f'"{name}" = ?' for name in names)


def _conditions(names: Names) -> str:
    # A bound null compares like the literal: `IF x = ?` with None holds when the column is not set.
    return " IF " + " AND ".join(f'"{name}" = ?' for name in names) if names else ""


def _ttl(with_ttl: bool) -> str:
    return " USING TTL ?" if with_ttl else ""
