"""The store for production: Apache Cassandra, through its Python driver. docs/cassandra.md says what it asks of one."""

from angelhair.stores.cassandra.connect import bootstrap, create_keyspace, open_store
from angelhair.stores.cassandra.schema import SchemaMissing
from angelhair.stores.cassandra.settings import CassandraSettings, Replication
from angelhair.stores.cassandra.store import CassandraStore

__all__ = ["CassandraSettings", "CassandraStore", "Replication", "SchemaMissing", "bootstrap", "create_keyspace",
           "open_store"]
