"""From settings to an open store, or to one line that says why not and what to do about it."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from angelhair import limits
from angelhair.engine import accounts
from angelhair.engine.store import Store
from angelhair.errors import AngelhairError, StoreRefused, Unavailable
from angelhair.server.configuration import SettingsRefused, development_warning, open_warning, serving_problem
from angelhair.server.installing import to_install
from angelhair.settings import DATABASE_NAME, DEFAULT_DATA, Settings

if TYPE_CHECKING:
    from angelhair.stores.cassandra import CassandraSettings

Tell = Callable[[str], None]

DATA_MODE = 0o700
"""Of a data directory that is made here: what is in the messages is nobody else's business."""


def silence(_: str) -> None:
    """For who does not want to be told."""


async def open_store(settings: Settings, tell: Tell = silence) -> Store:
    """`tell` hears what is unsafe, and of a schema that was created. Raises `StoreRefused` or `Unavailable`; their text
    is one line for people."""
    if settings.on_cassandra:
        return await _open_cassandra(settings, tell)
    return await _open_file(settings)


async def prepare(settings: Settings, tell: Tell = silence) -> None:
    """Opens the store and closes it again: whatever has to be created is, once, before several processes start; and
    what may not be served without access keys is refused, by `SettingsRefused`."""
    store = await open_store(settings, tell)
    try:
        has_keys = bool((await accounts.read_keys(store)).keys)
    finally:
        await store.close()
    if has_keys:
        return
    problem = serving_problem(settings)
    if problem is not None:
        raise SettingsRefused([problem])
    tell(open_warning(settings) or development_warning(settings))


async def keys_there(settings: Settings) -> bool:
    """Whether the store has access keys. Creates none: what is not there, or cannot be opened, has none."""
    if not is_there(settings):
        return False
    try:
        store = await open_store(settings)
    except AngelhairError:
        return False
    try:
        return bool((await accounts.read_keys(store)).keys)
    finally:
        await store.close()


def is_there(settings: Settings) -> bool:
    """Whether there is a store, or cannot be seen to be none: whoever opens it is then told more."""
    try:
        return settings.on_cassandra or database_path(settings).exists()
    except OSError:
        return True


def describe_store(settings: Settings) -> str:
    if not settings.on_cassandra:
        return f"the file {database_path(settings)}"
    name = f" of {settings.cluster_name}" if settings.cluster_name is not None else ""
    return f"keyspace {settings.keyspace}{name} on Cassandra at {places(settings)}"


def database_path(settings: Settings) -> Path:
    return Path(settings.data or DEFAULT_DATA) / DATABASE_NAME


def places(settings: Settings) -> str:
    return f"{','.join(settings.contact_points)} port {settings.store_port}{' (SSL)' if settings.use_ssl else ''}"


# --- the embedded file ----------------------------------------------------------------------------------------------


async def _open_file(settings: Settings) -> Store:
    from angelhair.stores import sqlite

    path = database_path(settings)
    try:
        path.parent.mkdir(mode=DATA_MODE, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreRefused(f"data wants a directory, and {error.filename or path.parent} is a file") from error
    except OSError as error:
        raise StoreRefused(f"the directory {path.parent} cannot be made: {error.strerror}") from error
    if not os.access(path.parent, os.R_OK | os.W_OK | os.X_OK):
        raise StoreRefused(f"the directory {path.parent} is not writable for user {os.geteuid()}")
    return await sqlite.open_store(path, writer="process")


# --- Cassandra ------------------------------------------------------------------------------------------------------


def cassandra_settings(settings: Settings) -> CassandraSettings:
    """Raises `StoreRefused` when the driver is not installed or a certificate cannot be used."""
    try:
        from angelhair.stores.cassandra.reaching import reaching
    except ImportError as error:
        raise StoreRefused(f"Cassandra's driver is not installed; {to_install('cassandra')}") from error
    return reaching(settings)


async def _open_cassandra(settings: Settings, tell: Tell) -> Store:
    wanted = cassandra_settings(settings)
    for _ in range(limits.OPEN_ATTEMPTS - 1):
        try:
            return await _attempt(settings, wanted, tell)
        except Exception as error:
            if not _passes(error):
                raise cassandra_trouble(settings, error) from error
        await asyncio.sleep(limits.OPEN_PAUSE_SECONDS)
    try:
        return await _attempt(settings, wanted, tell)
    except Exception as error:
        raise cassandra_trouble(settings, error) from error


async def _attempt(settings: Settings, wanted: CassandraSettings, tell: Tell) -> Store:
    from angelhair.stores import cassandra

    try:
        store = await cassandra.open_store(wanted)
    except cassandra.SchemaMissing:
        await _create_schema(settings, wanted)
        tell(f"keyspace {settings.keyspace} was empty; its tables have been created")
        store = await cassandra.open_store(wanted)
    for warning in store.warnings:
        tell(warning)
    return store


async def _create_schema(settings: Settings, wanted: CassandraSettings) -> None:
    from angelhair.stores import cassandra

    try:
        await cassandra.bootstrap(wanted)
    except Exception as error:
        if is_forbidden(error):
            raise StoreRefused(
                f"keyspace {settings.keyspace} is empty and {_who(settings)} may not create its tables; "
                "run `angelhair bootstrap` once, as somebody who may"
            ) from error
        raise


def _passes(error: BaseException) -> bool:
    """Whether the cluster was reached and is only busy with itself: while others that start at the same time create the
    tables, some nodes know them and some do not yet."""
    from cassandra import AlreadyExists, InvalidRequest, OperationTimedOut, RequestExecutionException

    return isinstance(error.__cause__, RequestExecutionException | InvalidRequest | AlreadyExists | OperationTimedOut)


def is_forbidden(error: BaseException) -> bool:
    from cassandra import Unauthorized

    return isinstance(error.__cause__, Unauthorized)


def cassandra_trouble(settings: Settings, error: Exception) -> AngelhairError:
    """What the driver raised, as one line. What is no trouble of Cassandra's is raised as it is."""
    from cassandra import AuthenticationFailed, DriverException

    from angelhair.stores.cassandra.errors import in_words, on_each_node, refused_as_such

    cause = error.__cause__ or error
    if is_forbidden(error):
        return StoreRefused(f"Cassandra does not allow it: {in_words(cause)}")
    if refused_as_such(cause):
        return StoreRefused(f"Cassandra at {places(settings)} refuses it: {in_words(cause)}")
    if isinstance(error, Unavailable | DriverException | OSError):
        each = on_each_node(cause)
        if each and all(isinstance(reason, AuthenticationFailed) for reason in each.values()):
            return StoreRefused(f"Cassandra at {places(settings)} refuses the login of {_who(settings)}; "
                                "set username and password")
        hint = ""
        if any(isinstance(reason, ssl.SSLError) for reason in each.values()):
            hint = "; see ssl_ca and ssl_check_hostname"
        return Unavailable(f"Cassandra cannot be reached at {places(settings)}: {in_words(cause)}{hint}")
    if isinstance(error, AngelhairError):
        return error
    raise error


def _who(settings: Settings) -> str:
    return f"user {settings.username}" if settings.username is not None else "a server without a user name"
