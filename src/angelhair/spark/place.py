"""Where a queue's rows lie, in a form that can be sent to tasks: a file, or a Cassandra.

Secrets are not sent. Whoever connects, the driver or a task, takes them from its own environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from angelhair.engine.store import Store
from angelhair.errors import StoreRefused
from angelhair.settings import DATABASE_NAME
from angelhair.spark.refusals import refused

if TYPE_CHECKING:
    from angelhair.stores.cassandra import CassandraSettings

DEFAULT_PORT = 9042


@dataclass(frozen=True, slots=True)
class Place:
    """A file if `path` is set, else a Cassandra."""

    path: str | None = None
    contact_points: tuple[str, ...] = ()
    port: int = DEFAULT_PORT
    keyspace: str = "angelhair"
    data_center: str | None = None
    consistency_level: str = "LOCAL_QUORUM"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Place:
        """From the options of a read or write; where they say nothing, from the environment that servers use."""
        data = options.get("data")
        points = options.get("contactpoints") or ("" if data else os.environ.get("CONTACT_POINTS", ""))
        if data and points:
            raise refused("data", "and contactPoints cannot both be given: the rows are in one of the two")
        if data:
            return cls(path=str(Path(data).absolute() / DATABASE_NAME))
        contact_points = tuple(point.strip() for point in points.split(",") if point.strip())
        if not contact_points:
            raise refused("data", "is missing, and so is contactPoints: where is the queue?")
        return cls(
            None,
            contact_points,
            int(options.get("cassandraport") or os.environ.get("CASSANDRA_PORT") or DEFAULT_PORT),
            options.get("keyspace") or os.environ.get("KEYSPACE") or "angelhair",
            options.get("datacenter") or os.environ.get("DATA_CENTER") or None,
            options.get("consistencylevel") or os.environ.get("CONSISTENCY_LEVEL") or "LOCAL_QUORUM",
        )

    async def open(self, changing: bool = False) -> Store:
        """For the driver: reads marks, not messages. Never makes a file that is not there."""
        if self.path is not None:
            from angelhair.stores import sqlite

            self.check()
            return await (sqlite.open_store(self.path) if changing else sqlite.open_reader(self.path))
        from angelhair.stores import cassandra

        return await cassandra.open_store(self.cassandra_settings())

    def check(self) -> None:
        if self.path is not None and not Path(self.path).exists():
            raise StoreRefused(f"there is no {self.path}: `data` wants what the server has as --data")

    def cassandra_settings(self) -> CassandraSettings:
        from angelhair.stores.cassandra import CassandraSettings

        return CassandraSettings(
            contact_points=self.contact_points,
            port=self.port,
            keyspace=self.keyspace,
            user=os.environ.get("USERNAME") or None,
            password=os.environ.get("PASSWORD") or None,
            data_centre=self.data_center,
            read_consistency=self.consistency_level,
            write_consistency=self.consistency_level,
            application_name="angelhair-spark",
        )
