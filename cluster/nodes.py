"""Starts nodes, waits until they answer, and does to them what the world does: kill, pause, start again."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

from cluster.classes import class_archive
from cluster.configuration import CommitLogSync, NodePlan
from cluster.jars import fetch_jars, java_command
from cluster.node import CQL_PORT, ClusterFailed, Node

DEFAULT_HEAP_MEGABYTES = 640
"""Below half a gigabyte a node under load spends its time collecting."""

START_TIMEOUT_SECONDS = 240
"""A node takes 10 s on an idle machine; a loaded one with two cores may need many times that for three."""

STOP_TIMEOUT_SECONDS = 30
"""After this a node that was asked to stop is killed."""

POLL_SECONDS = 0.2
CONNECT_TIMEOUT_SECONDS = 10


class CassandraCluster:
    """One or more nodes on consecutive loopback addresses. Nodes are numbered from 1.

    `first_address` is the last byte of the first node's address: clusters that run at once take different ones.
    `short_lived` nodes start in half the time and are slower at their best: for tests, not for measurements.
    `steady` ones make tables in a third of the time, and forget them when they end: they are not started again.
    `where` their data is to lie until they stop, if not in the usual place for temporary files.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        first_address: int = 1,
        directory: Path | None = None,
        commitlog_sync: CommitLogSync = "batch",
        paxos_variant: str = "v2",
        heap_megabytes: int = DEFAULT_HEAP_MEGABYTES,
        short_lived: bool = False,
        steady: bool = False,
        where: Path | None = None,
    ) -> None:
        java, jars = java_command(), fetch_jars()
        archive = class_archive(java, jars)
        class_options = (f"-XX:SharedArchiveFile={archive}",) if archive is not None else ()
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="angelhair-cassandra-", dir=where))
        addresses = tuple(f"127.0.0.{first_address + offset}" for offset in range(nodes))
        self._nodes = [
            Node(
                NodePlan(number, address, addresses, self.directory / f"node{number}", commitlog_sync, paxos_variant,
                         heap_megabytes, short_lived, steady, class_options),
                java,
                jars,
            )
            for number, address in enumerate(addresses, start=1)
        ]

    @property
    def contact_points(self) -> list[str]:
        return [node.address for node in self._nodes]

    @property
    def size(self) -> int:
        return len(self._nodes)

    def node(self, number: int) -> Node:
        return self._nodes[number - 1]

    def start(self) -> None:
        """Starts all nodes that do not run, at the same time, and returns when every one sees every other."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Starts all nodes that do not run, and does not wait for them."""
        for node in self._nodes:
            if not node.running and node.answers():
                raise ClusterFailed(
                    f"something else answers on {node.address}:{CQL_PORT}, perhaps another cluster of yours. "
                    "Stop it, or take other addresses, such as make cassandra ARGS='--first-address 11'"
                )
        for node in self._nodes:
            node.start()

    def wait_until_answering(self, timeout_seconds: float = START_TIMEOUT_SECONDS) -> None:
        """Until every node answers and sees every other. Another process has started them, in the same directory."""
        deadline = time.monotonic() + timeout_seconds
        for node in self._nodes:
            while not (node.answers() and self._is_ready(node, together=True)):
                if time.monotonic() > deadline:
                    raise ClusterFailed(f"nobody answers on {node.address}:{CQL_PORT} after {timeout_seconds:.0f} s")
                time.sleep(POLL_SECONDS)

    def start_node(self, number: int) -> None:
        """Starts one node on the data it had; returns when all running nodes see each other."""
        self.node(number).start()
        self.wait_until_ready()

    def kill(self, number: int) -> None:
        self.node(number).kill()

    def kill_all(self) -> None:
        """All at once: signals first, funerals later, so that no node outlives another by more than a moment."""
        for node in self._nodes:
            node._signal(signal.SIGKILL)
        for node in self._nodes:
            node.kill()

    def pause(self, number: int) -> None:
        self.node(number).pause()

    def resume(self, number: int) -> None:
        self.node(number).resume()

    def stop(self) -> None:
        """Stops what this object started; a temporary data directory goes too."""
        running = [node for node in self._nodes if node.running]
        if self._temporary:
            # Nobody will read this data again: no need for it to be flushed.
            self.kill_all()
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        for node in running:
            node.terminate()
        for node in self._nodes:
            node.wait_stopped(STOP_TIMEOUT_SECONDS)

    def wait_until_ready(self, timeout_seconds: float = START_TIMEOUT_SECONDS) -> None:
        """Until every running node answers CQL and counts all running nodes as alive."""
        deadline = time.monotonic() + timeout_seconds
        waiting = [node for node in self._nodes if node.running]
        together = len(waiting) == self.size
        for node in waiting:
            while not (node.answers() and self._is_ready(node, together)):
                if not node.running:
                    raise ClusterFailed(f"node {node.plan.number} ended while starting:\n{node.last_words()}")
                if time.monotonic() > deadline:
                    raise ClusterFailed(
                        f"node {node.plan.number} was not ready after {timeout_seconds:.0f} s:\n{node.last_words()}"
                    )
                time.sleep(POLL_SECONDS)

    def _is_ready(self, node: Node, together: bool) -> bool:
        # A read at ALL of a table with three replicas: its coordinator refuses unless it takes all nodes to be alive.
        demanding = together and self.size == 3
        level = ConsistencyLevel.ALL if demanding else ConsistencyLevel.ONE
        table = "system_distributed.parent_repair_history" if demanding else "system.local"
        key = "parent_id = 00000000-0000-1000-8000-000000000000" if demanding else "key = 'local'"
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([node.address]),
            retry_policy=FallthroughRetryPolicy(),
            request_timeout=CONNECT_TIMEOUT_SECONDS,
        )
        driver = Cluster(
            [node.address],
            port=CQL_PORT,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
        )
        try:
            session = driver.connect()
            session.execute(SimpleStatement(f"SELECT * FROM {table} WHERE {key}", consistency_level=level))
            return True
        except Exception:  # noqa: BLE001  a node that starts fails in many ways; all of them mean: not yet
            return False
        finally:
            driver.shutdown()

    def __enter__(self) -> CassandraCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def contact_points_text(addresses: Sequence[str]) -> str:
    return ", ".join(f"{address}:{CQL_PORT}" for address in addresses)
