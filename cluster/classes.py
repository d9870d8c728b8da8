"""Classes that are read, checked and laid out already, in one file that the JVMs of all nodes share: most of what a
node does when it starts is to load ten thousand of them. The first start on a machine makes the file, beside the jars.

A node does without when there is none or when it does not fit: it starts as well, later.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy

from cluster.configuration import NodePlan
from cluster.maven import HASH_CHARACTERS
from cluster.node import CQL_PORT, Node

ADDRESS = "127.0.0.250"
"""Of the node that is started to write its classes down. Away from all others; there is one at a time on a machine."""

HEAP_MEGABYTES = 640

LIFE_TIMEOUT_SECONDS = 120
"""For the start and for the end, each: it takes some 10 s on an idle machine. Then the nodes do without."""

POLL_SECONDS = 0.2

STATEMENTS = (
    "CREATE KEYSPACE some WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
    "CREATE TABLE some.rows (place text, key bigint, body blob, PRIMARY KEY (place, key)) "
    "WITH compaction = {'class': 'LeveledCompactionStrategy'}",
    "ALTER TABLE some.rows ADD words text",
    "INSERT INTO some.rows (place, key, body) VALUES ('here', 1, 0x00) USING TTL 1000",
    "INSERT INTO some.rows (place, key, words) VALUES ('here', 2, 'two') IF NOT EXISTS",
    "BEGIN BATCH UPDATE some.rows SET words = 'two' WHERE place = 'here' AND key = 1 IF words = null "
    "UPDATE some.rows SET words = 'one' WHERE place = 'here' AND key = 2 APPLY BATCH",
    "SELECT * FROM some.rows WHERE place = 'here' AND key > 1 AND key < 9 ORDER BY key DESC LIMIT 3",
    "DELETE FROM some.rows WHERE place = 'here'",
)
"""What a node is asked in its later life, more or less: so that it knows these classes too."""


@functools.cache
def class_archive(java: str, jars: Path) -> Path | None:
    """The file for this Java and these jars, made if there is none. Two who come at once make one; None when it
    cannot be made, whatever the reason."""
    try:
        name = f"classes-{_identity(java, jars)}"
        if (archive := _found(jars.parent, name)) is not None:
            return archive
        with open(jars.parent / "classes.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _found(jars.parent, name) or _made(jars.parent, name, java, jars)
    except OSError:
        return None


def _found(cache: Path, name: str) -> Path | None:
    """Its name ends with its size: a JVM finds out by itself that a file is not for it, but dies of one that is cut
    off, as a machine without power or without space may leave it."""
    return next((file for file in cache.glob(f"{name}-*.jsa") if file.stem == f"{name}-{file.stat().st_size}"), None)


def _identity(java: str, jars: Path) -> str:
    """A JVM takes no file of another version of it, nor of other jars."""
    version = subprocess.run([java, "-version"], check=False, capture_output=True).stderr
    parts = [version] + [
        f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}".encode() for jar in sorted(jars.glob("*.jar"))
    ]
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:HASH_CHARACTERS]


def _made(cache: Path, name: str, java: str, jars: Path) -> Path | None:
    for outdated in cache.glob("classes-*.jsa*"):
        outdated.unlink(missing_ok=True)
    partial = cache / f"{name}.jsa.partial"
    directory = Path(tempfile.mkdtemp(prefix="angelhair-classes-"))
    plan = NodePlan(
        number=1, address=ADDRESS, all_addresses=(ADDRESS,), directory=directory / "node1", commitlog_sync="batch",
        paxos_variant="v2", heap_megabytes=HEAP_MEGABYTES, short_lived=True,
        class_options=(f"-XX:ArchiveClassesAtExit={partial}",),
    )
    node = Node(plan, java, jars)
    try:
        if node.answers():
            return None
        node.start()
        if not _lived(node):
            return None
        # An ordered end: only then are the classes written down.
        node.terminate()
        node.wait_stopped(LIFE_TIMEOUT_SECONDS)
        # It gets its name only when it is complete.
        return partial.rename(cache / f"{name}-{partial.stat().st_size}.jsa") if partial.exists() else None
    finally:
        node.kill()
        partial.unlink(missing_ok=True)
        shutil.rmtree(directory, ignore_errors=True)


def _lived(node: Node) -> bool:
    """Waits until the node answers, and has it do some work."""
    deadline = time.monotonic() + LIFE_TIMEOUT_SECONDS
    while not node.answers():
        if not node.running or time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([node.address]), request_timeout=LIFE_TIMEOUT_SECONDS
    )
    driver = Cluster([node.address], port=CQL_PORT, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                     connect_timeout=LIFE_TIMEOUT_SECONDS)
    try:
        session = driver.connect()
        for statement in STATEMENTS:
            session.execute(statement)
        return True
    except Exception:  # noqa: BLE001  a node can fail in many ways; all of them mean that there will be no file
        return False
    finally:
        driver.shutdown()
