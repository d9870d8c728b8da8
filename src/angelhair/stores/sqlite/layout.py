"""How the engine's tables lie in the file, and the one function that creates them and brings them forward.

Each engine table is one SQLite table, its primary key the partition and the row's key, so that a span is one walk
along a tree; the flags of its partitions are a second table. A hidden column holds the time at which a row with a
TTL is gone; a partial index finds those rows for the sweep and costs nothing for all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from angelhair.engine.store import Table
from angelhair.errors import StoreRefused

APPLICATION_ID = 0x416E6765
"""The letters `Ange` in the file's header: so that we never lay our tables into somebody else's file."""

PARTITION = '"_partition"'
KEY = '"_key"'
EXPIRES = '"_expires_ms"'
"""Hidden columns start with an underscore, which no column of the engine does."""

_TYPES = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}


def quoted(name: str) -> str:
    return f'"{name}"'


def flags_of(table: Table) -> str:
    return quoted(table.name + "_flags")


def lay_out(connection: apsw.Connection, tables: Sequence[Table], version: int) -> None:
    """Creates the tables, or brings an older file forward; refuses a newer file and one that is not ours."""
    try:
        found = _version(connection)
        if found == version:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _version(connection)  # another process may have been quicker
            if found < version:
                for table in tables:
                    _lay_out_table(connection, table)
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", version)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except apsw.NotADBError as error:
        raise StoreRefused(f"the file {connection.filename} is not a SQLite database") from error
    _refuse_newer(found, version)


def check(connection: apsw.Connection, version: int) -> None:
    """For who only reads: refuses a file that has no tables of ours, or that another release has to bring forward."""
    try:
        found = _version(connection)
    except apsw.NotADBError as error:
        raise StoreRefused(f"the file {connection.filename} is not a SQLite database") from error
    _refuse_newer(found, version)
    if found < version:
        raise StoreRefused(
            f"the file {connection.filename} has schema version {found}: a server of this release has to open it first"
        )


def _refuse_newer(found: int, version: int) -> None:
    if found > version:
        raise StoreRefused(
            f"the file has schema version {found}, this release knows {version}: use the newer release that made it"
        )


def _version(connection: apsw.Connection) -> int:
    """0 for an empty file."""
    is_ours = connection.pragma("application_id") == APPLICATION_ID
    if not is_ours and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StoreRefused(f"the file {connection.filename} is a SQLite database of another application")
    return int(connection.pragma("user_version")) if is_ours else 0


def _lay_out_table(connection: apsw.Connection, table: Table) -> None:
    columns = [f"{quoted(name)} {_TYPES[kind]}" for name, kind in table.columns.items()]
    name = quoted(table.name)
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {name} ({PARTITION} TEXT NOT NULL, {KEY} {_TYPES[table.key]} NOT NULL, "
        f"{', '.join(columns)}, {EXPIRES} INTEGER, PRIMARY KEY ({PARTITION}, {KEY})) {_options(table)}"
    )
    connection.execute(
        f"CREATE INDEX IF NOT EXISTS {quoted(table.name + '_expiry')} ON {name} ({EXPIRES}) WHERE {EXPIRES} IS NOT NULL"
    )
    _add_columns(connection, name, columns)
    if table.flags:
        flags = [f"{quoted(name)} {_TYPES[kind]}" for name, kind in table.flags.items()]
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {flags_of(table)} ({PARTITION} TEXT NOT NULL PRIMARY KEY, {', '.join(flags)}) "
            "STRICT, WITHOUT ROWID"
        )
        _add_columns(connection, flags_of(table), flags)


def _options(table: Table) -> str:
    """Rows that carry payloads lie in a table with rowids, all others in the tree of their primary key.

    Measured with 4 KiB pages and commits of 1,024 rows: with bodies of 200 bytes both write 470,000 rows/s or more;
    with 2 kB a rowid table writes 97,000 rows/s and the other 52,000, with 100 kB 4,600 and 3,300, as the tree
    of a primary key keeps only a quarter of a page of each row and sends the rest to overflow pages. Without payloads
    the rowid would only add a second tree to write.
    """
    carries_payloads = not table.conditional and bytes in table.columns.values()
    return "STRICT" if carries_payloads else "STRICT, WITHOUT ROWID"


def _add_columns(connection: apsw.Connection, name: str, columns: Sequence[str]) -> None:
    present = {quoted(row[1]) for row in connection.execute(f"PRAGMA table_info({name})")}
    for column in columns:
        if column.split(" ")[0] not in present:
            connection.execute(f"ALTER TABLE {name} ADD COLUMN {column}")
