"""The test cluster itself: nothing of it outlives whoever started it, and what is missing is said."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster import CassandraCluster, ComponentMissing
from cluster.classes import _identity, class_archive
from cluster.configuration import TOKENS_PER_NODE, tokens
from cluster.jars import fetch_jars, java_command
from cluster.node import CQL_PORT

ROOT = Path(__file__).resolve().parents[2]
FIRST_ADDRESS = 31
PATIENCE_SECONDS = 60


def answers() -> bool:
    try:
        with socket.create_connection((f"127.0.0.{FIRST_ADDRESS}", CQL_PORT), timeout=1):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_the_nodes_end_with_whoever_started_them(ending: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, "-m", "cluster", "--nodes", "1", "--first-address", str(FIRST_ADDRESS),
               "--directory", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        said = ""
        for line in runner.stdout:
            said += line
            if "Ctrl-C stops it" in line:
                break
        assert f"Cassandra answers on 127.0.0.{FIRST_ADDRESS}:{CQL_PORT}" in said
        assert answers()
        runner.send_signal(ending)
        code = runner.wait(PATIENCE_SECONDS)
    assert code == (0 if ending == signal.SIGTERM else -signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while answers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not answers()


def test_without_java_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ComponentMissing, match="needs Java 17"):
        java_command()


@pytest.mark.parametrize("nodes", [1, 3])
def test_tokens_are_balanced_and_nobody_shares_one(nodes: int) -> None:
    ring = sorted(token for number in range(1, nodes + 1) for token in tokens(number, nodes))
    assert len(set(ring)) == nodes * TOKENS_PER_NODE
    assert ring[0] >= -(2**63)
    assert ring[-1] < 2**63
    gaps = {following - token for token, following in itertools.pairwise(ring)}
    assert len(gaps) == 1


def test_the_nodes_share_their_classes(cassandra_cluster: CassandraCluster) -> None:
    archive = class_archive(java_command(), fetch_jars())
    assert archive is not None
    for number in range(1, cassandra_cluster.size + 1):
        pid = cassandra_cluster.node(number).plan.pid_file.read_text()
        assert str(archive) in Path(f"/proc/{pid}/maps").read_text()


def test_without_shared_classes_a_node_starts_all_the_same(tmp_path: Path) -> None:
    jars = tmp_path / "lib"
    jars.mkdir()
    no_java = "/bin/false"
    assert class_archive(no_java, jars) is None
    assert {file.name for file in tmp_path.iterdir()} == {"lib", "classes.lock"}
    # One that was cut off would end the JVM that reads it: it is not taken, and goes.
    cut_off = tmp_path / f"classes-{_identity(no_java, jars)}-1000.jsa"
    cut_off.write_bytes(bytes(999))
    class_archive.cache_clear()
    assert class_archive(no_java, jars) is None
    assert not cut_off.exists()
    # One that is not for this JVM does it no harm.
    foreign = tmp_path / "foreign.jsa"
    foreign.write_bytes(b"of another JVM" * 10_000)
    subprocess.run([java_command(), "-Xshare:auto", f"-XX:SharedArchiveFile={foreign}", "-version"], check=True)
