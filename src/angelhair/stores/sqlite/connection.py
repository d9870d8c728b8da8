"""Opening a connection that keeps its word: write-ahead log, synchronous, and both read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import apsw

from angelhair.errors import StoreRefused

Durability = Literal["full", "normal"]

BUSY_TIMEOUT_MS = 5_000
"""How long a write waits for other processes on the file: many commits, but less than a client's patience."""

WRITER_CACHE_KIB = 32 * 1024
"""The pages that a transaction dirties should fit, or they spill into the log before the commit."""

READER_CACHE_KIB = 16 * 1024
"""The upper pages of the trees; the leaves come from the kernel's cache."""

LOG_SIZE_LIMIT_BYTES = 64 * 1024 * 1024
"""A log that grew beyond this is cut back once it starts from the beginning again."""

CHECKPOINT_PAGES = 4_000
"""16 MiB of log. A checkpoint then takes some 30 ms, and a restart after kill -9 reads that much at most."""

STATEMENT_CACHE = 1_000
"""Prepared statements kept per connection: about ten shapes of rows in nine tables, in nine lengths each."""

_SYNCHRONOUS = {"normal": 1, "full": 2}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store's file is and how it is opened; every connection of a store is opened from one of these."""

    path: str
    vfs: str | None = None
    durability: Durability = "full"
    """"normal" may lose confirmed commits when the power fails. It exists to prove that the tests would notice."""
    busy_timeout_ms: int = BUSY_TIMEOUT_MS
    checkpoint_pages: int = CHECKPOINT_PAGES


def connect_writer(place: Place) -> apsw.Connection:
    connection = _open(place, place.busy_timeout_ms, WRITER_CACHE_KIB)
    try:
        _insist(connection, "journal_mode", "wal", "wal")
        _insist(connection, "synchronous", place.durability, _SYNCHRONOUS[place.durability])
        # macOS's fsync does not reach the platter without these; elsewhere they change nothing.
        connection.pragma("fullfsync", 1)
        connection.pragma("checkpoint_fullfsync", 1)
        connection.pragma("journal_size_limit", LOG_SIZE_LIMIT_BYTES)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(place: Place) -> apsw.Connection:
    """The reader lives on the event loop, so it never waits for a lock: it is told to come again."""
    connection = _open(place, 0, READER_CACHE_KIB)
    connection.pragma("query_only", 1)
    return connection


def _open(place: Place, busy_timeout_ms: int, cache_kib: int) -> apsw.Connection:
    connection = apsw.Connection(place.path, vfs=place.vfs, statementcachesize=STATEMENT_CACHE)
    connection.set_busy_timeout(busy_timeout_ms)
    # Without this a quoted name that is no column is silently taken for a string.
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.pragma("cache_size", -cache_kib)
    # The checkpoint is the writer's own business (threads.py); it must never happen inside somebody's COMMIT.
    connection.wal_autocheckpoint(0)
    return connection


def _insist(connection: apsw.Connection, pragma: str, wanted: str, expected: Any) -> None:
    connection.pragma(pragma, wanted)
    found = connection.pragma(pragma)
    if found != expected:
        raise StoreRefused(
            f"SQLite answers {found!r} when asked for {pragma}={wanted}: a confirmed write would not be safe in it"
        )
