"""The embedded store: one SQLite file, for one machine and any number of processes on it."""

from angelhair.stores.sqlite.store import SqliteStore, open_reader, open_store

__all__ = ["SqliteStore", "open_reader", "open_store"]
