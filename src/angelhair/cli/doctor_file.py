"""What `doctor` finds about an embedded file: whether it is ours, how safely it writes, and how much room it has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw

from angelhair import limits
from angelhair.cli.checks import Check, good, judged, unknown, wrong
from angelhair.cli.opening import database_path
from angelhair.engine.schema import SCHEMA_VERSION
from angelhair.errors import StoreRefused
from angelhair.settings import Settings
from angelhair.stores.sqlite.connection import Place, connect_writer
from angelhair.stores.sqlite.errors import describe
from angelhair.stores.sqlite.layout import APPLICATION_ID

MIB = 1024 * 1024

_SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}


def look(settings: Settings) -> Iterator[Check]:
    path = database_path(settings)
    yield from _look_at_file(path)
    yield from _look_at_space(path.parent)


def _look_at_file(path: Path) -> Iterator[Check]:
    name = "file"
    if not path.parent.is_dir():
        yield wrong(name, f"there is no directory {path.parent}")
        return
    try:
        size_bytes = path.stat().st_size
    except FileNotFoundError:
        yield wrong(name, f"there is no {path.name} in {path.parent}; `angelhair serve` makes one")
        return
    except OSError as error:
        yield unknown(name, f"{path}: {error.strerror}")
        return
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        yield unknown(name, f"{path} and its directory are not readable and writable for user {os.geteuid()}")
        return
    try:
        # Without the right to write: to look at somebody else's file must not turn it into ours.
        reading = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            application, version = reading.pragma("application_id"), reading.pragma("user_version")
            journal = str(reading.pragma("journal_mode"))
        finally:
            reading.close()
    except apsw.Error as error:
        yield wrong(name, f"{path} cannot be opened; {describe(error)}")
        return
    if application != APPLICATION_ID:
        yield wrong(name, f"{path} is a SQLite database of another application")
        return
    yield good(name, f"{path}, {size_bytes / MIB:,.1f} MiB and {_log_bytes(path) / MIB:,.1f} MiB of log")
    yield _schema(version)
    yield judged("journal mode", [] if journal == "wal" else [f"{journal}, and must be wal"], journal)
    if journal == "wal":
        yield _synchronous(path)


def _schema(version: object) -> Check:
    name = "schema version"
    if version == SCHEMA_VERSION:
        return good(name, str(version))
    if isinstance(version, int) and version < SCHEMA_VERSION:
        return good(name, f"{version}; the next server that opens it brings it forward to {SCHEMA_VERSION}")
    return wrong(name, f"{version}, newer than this program's {SCHEMA_VERSION}: use the newer release that made it")


def _synchronous(path: Path) -> Check:
    """Not kept in the file: what counts is what a server's own way of opening it comes to here."""
    name = "synchronous"
    try:
        writing = connect_writer(Place(str(path)))
        try:
            found = writing.pragma("synchronous")
        finally:
            writing.close()
    except StoreRefused as error:
        return wrong(name, str(error))
    except apsw.Error as error:
        return unknown(name, describe(error))
    return good(name, f"{_SYNCHRONOUS.get(found, found)}: what is confirmed is on the disk")


def _log_bytes(path: Path) -> int:
    log = path.with_name(path.name + "-wal")
    return log.stat().st_size if log.exists() else 0


def _look_at_space(directory: Path) -> Iterator[Check]:
    name = "disk space"
    if not directory.is_dir():
        return
    try:
        usage = shutil.disk_usage(directory)
    except OSError as error:
        yield unknown(name, f"{directory}: {error.strerror}")
        return
    found = f"{usage.free / MIB:,.0f} MiB of {usage.total / MIB:,.0f} MiB are free"
    least = limits.DOCTOR_FREE_BYTES
    yield judged(name, [f"{found}, less than {least // MIB:,} MiB"] if usage.free < least else [], found)
