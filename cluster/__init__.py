"""A real Cassandra on loopback, for tests, proofs and for trying things out: `make cassandra NODES=3`.

    with CassandraCluster(nodes=3) as cassandra:
        cassandra.contact_points        # ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
        cassandra.kill(2)               # SIGKILL; cassandra.start_node(2) brings it back on the same data
"""

from cluster.maven import ComponentMissing
from cluster.nodes import CassandraCluster, ClusterFailed

__all__ = ["CassandraCluster", "ClusterFailed", "ComponentMissing"]
