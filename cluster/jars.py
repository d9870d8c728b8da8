"""What a node is made of: Cassandra's jars, which Maven fetches once, and the Java that runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from cluster.maven import ComponentMissing, cache_root, fetch

CASSANDRA_VERSION = "5.0.9"
"""What `pom.xml` asks for; the cache folder is named by it."""

SUPPORTED_JAVA_VERSIONS = (11, 17)
"""What Cassandra 5.0 runs on."""

JAVA_VERSION_TIMEOUT_SECONDS = 30

NAME = f"cassandra-{CASSANDRA_VERSION}"

POM = Path(__file__).with_name("pom.xml")


def cache_directory() -> Path:
    return cache_root() / NAME


def java_command() -> str:
    """The Java that will run the nodes: JAVA_HOME's, or the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise ComponentMissing("a real Cassandra needs Java 17, and there is no `java` on this machine")
    said = subprocess.run(
        [java, "-version"], check=False, capture_output=True, text=True, timeout=JAVA_VERSION_TIMEOUT_SECONDS
    )
    found = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if found is None or int(found.group(1)) not in SUPPORTED_JAVA_VERSIONS:
        version = found.group(1) if found else "of an unknown version"
        raise ComponentMissing(f"a real Cassandra needs Java 17; {java} is {version}")
    return java


def fetch_jars() -> Path:
    """The folder with the jars."""
    return fetch(POM, NAME, f"Cassandra {CASSANDRA_VERSION}", ["cassandra-all-*.jar"])
