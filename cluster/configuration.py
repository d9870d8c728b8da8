"""What a node is told: its cassandra.yaml, its log configuration and the command line of its JVM."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CommitLogSync = Literal["batch", "periodic", "group"]

TOKENS_PER_NODE = 4
"""Enough to spread partitions over three nodes; more only slows the start down."""

TOKEN_RING_START = -(2**63)
TOKEN_RING_SIZE = 2**64

PERIODIC_SYNC_MILLISECONDS = 10_000
"""Cassandra's own default, the one that loses confirmed writes."""

GROUP_WINDOW_MILLISECONDS = 2

RING_DELAY_MILLISECONDS = 1_000
"""How long a node listens before it believes what it hears of the ring. On loopback a second is plenty."""

ROW_OVERHEAD_BYTES = 180
"""Of a row in memory, by which a node knows when to write rows to disk. It is what every node finds out when it starts,
in 2 s of processor time: more than a quarter of its start."""

_COMMIT_LOG = {
    "batch": "commitlog_sync: batch",
    "periodic": f"commitlog_sync: periodic\ncommitlog_sync_period: {PERIODIC_SYNC_MILLISECONDS}ms",
    "group": f"commitlog_sync: group\ncommitlog_sync_group_window: {GROUP_WINDOW_MILLISECONDS}ms",
}

_OPENED_PACKAGES = """
    java.base/java.io java.base/java.lang java.base/java.lang.ref java.base/java.lang.reflect java.base/java.net
    java.base/java.nio java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic
    java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.misc java.base/jdk.internal.module
    java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar java.base/sun.nio.ch
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server
    java.rmi/sun.rmi.transport.tcp java.sql/java.sql jdk.management/com.sun.management.internal
""".split()
"""Cassandra reaches into these; Java 17 keeps them shut unless told."""


@dataclass(frozen=True)
class NodePlan:
    """Everything that makes one node different from another."""

    number: int
    """Counted from 1."""
    address: str
    all_addresses: tuple[str, ...]
    directory: Path
    commitlog_sync: CommitLogSync
    paxos_variant: str
    heap_megabytes: int
    short_lived: bool
    steady: bool = False
    """It is not killed, or not started again: what it knows of the schema it need not write to disk."""
    class_options: tuple[str, ...] = ()
    """Where its JVM finds classes, or writes them down; see `cluster.classes`."""

    @property
    def log_file(self) -> Path:
        return self.directory / "system.log"

    @property
    def pid_file(self) -> Path:
        """For who did not start it."""
        return self.directory / "pid"

    @property
    def output_file(self) -> Path:
        return self.directory / "output.log"


def tokens(number: int, nodes: int) -> list[int]:
    """Evenly spaced and dealt out in turn: balanced, and no two nodes can draw the same one when they start at once."""
    step = TOKEN_RING_SIZE // (TOKENS_PER_NODE * nodes)
    return [TOKEN_RING_START + step * (turn * nodes + number - 1) for turn in range(TOKENS_PER_NODE)]


def write_configuration(plan: NodePlan) -> None:
    configuration = plan.directory / "conf"
    configuration.mkdir(parents=True, exist_ok=True)
    # Every node is a seed: with a single one, a restart of the whole cluster waits for that one (row 15).
    seeds = ",".join(plan.all_addresses)
    initial_tokens = ",".join(str(token) for token in tokens(plan.number, len(plan.all_addresses)))
    (configuration / "cassandra.yaml").write_text(
        f"""\
cluster_name: angelhair-{plan.all_addresses[0]}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: {TOKENS_PER_NODE}
initial_token: "{initial_tokens}"
auto_bootstrap: false
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{seeds}"}}]
listen_address: {plan.address}
rpc_address: {plan.address}
data_file_directories: ["{plan.directory}/data"]
commitlog_directory: {plan.directory}/commitlog
saved_caches_directory: {plan.directory}/saved_caches
hints_directory: {plan.directory}/hints
cdc_raw_directory: {plan.directory}/cdc
{_COMMIT_LOG[plan.commitlog_sync]}
paxos_variant: {plan.paxos_variant}
auto_snapshot: false
concurrent_reads: 16
concurrent_writes: 16
concurrent_compactors: 1
"""
    )
    (configuration / "logback.xml").write_text(
        f"""\
<configuration>
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>{plan.log_file}</file>
    <encoder><pattern>%-5level %date{{ISO8601}} %logger{{0}} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="FILE"/></root>
</configuration>
"""
    )


def command_line(plan: NodePlan, java: str, jars: Path) -> list[str]:
    opened: list[str] = []
    for package in _OPENED_PACKAGES:
        opened += ["--add-exports", f"{package}=ALL-UNNAMED", "--add-opens", f"{package}=ALL-UNNAMED"]
    configuration = plan.directory / "conf"
    return [
        java,
        f"-Xms{plan.heap_megabytes}M",
        f"-Xmx{plan.heap_megabytes}M",
        "-XX:+UseSerialGC",  # several nodes share few cores and small heaps: no crew of collector threads for each
        "-XX:+ExitOnOutOfMemoryError",
        "-Xshare:auto",
        *plan.class_options,
        # A node that lives for minutes is gone before an optimizing compiler has earned what it costs.
        *(["-XX:TieredStopAtLevel=1"] if plan.short_lived else []),
        # Otherwise it writes a dozen files anew for every table that is made, and waits for the disk.
        *(["-Dcassandra.unsafesystem=true"] if plan.steady else []),
        *opened,
        "-Djdk.attach.allowAttachSelf=true",
        "-Djava.net.preferIPv4Stack=true",
        f"-Dcassandra.config=file:{configuration}/cassandra.yaml",
        f"-Dlogback.configurationFile=file:{configuration}/logback.xml",
        f"-Dcassandra.storagedir={plan.directory}",
        f"-Dcassandra.ring_delay_ms={RING_DELAY_MILLISECONDS}",
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        f"-Dcassandra.memtable.row_overhead_size={ROW_OVERHEAD_BYTES}",
        "-cp",
        # One by one and in order, and no folder: that is what an archive of classes is bound to.
        os.pathsep.join(sorted(str(jar) for jar in jars.glob("*.jar"))),
        "org.apache.cassandra.service.CassandraDaemon",
    ]
