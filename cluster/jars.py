"""Gets Cassandra's jars through Maven, once, and keeps them between runs: in ~/.cache/angelhair, or where the
environment variable ANGELHAIR_CACHE says. Maven keeps copies of its own, as it always does, in ~/.m2."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

CASSANDRA_VERSION = "5.0.9"
"""What `pom.xml` asks for; the cache folder is named by it."""

SUPPORTED_JAVA_VERSIONS = (11, 17)
"""What Cassandra 5.0 runs on."""

FETCH_TIMEOUT_SECONDS = 900
"""Some 70 MB through a slow mirror; longer than that is a hang."""

JAVA_VERSION_TIMEOUT_SECONDS = 30

POM = Path(__file__).with_name("pom.xml")


class ComponentMissing(RuntimeError):
    """Something the cluster needs is not on this machine; the message says what."""


def cache_directory() -> Path:
    configured = os.environ.get("ANGELHAIR_CACHE")
    root = Path(configured) if configured else Path.home() / ".cache" / "angelhair"
    return root / f"cassandra-{CASSANDRA_VERSION}"


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
    """The folder with the jars. The first call on a machine downloads them; two calls at once share one download."""
    cache = cache_directory()
    jars = cache / "lib"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise ComponentMissing(
            f"the jars of Cassandra {CASSANDRA_VERSION} come through Maven, and there is no `mvn` on this machine"
        )
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if jars.is_dir():
            return jars
        partial = cache / "lib.partial"
        shutil.rmtree(partial, ignore_errors=True)
        fetched = subprocess.run(
            [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={partial}"],
            check=False,
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_SECONDS,
        )
        if fetched.returncode != 0 or not any(partial.glob("cassandra-all-*.jar")):
            raise ComponentMissing(f"Maven could not fetch Cassandra's jars:\n{fetched.stdout}{fetched.stderr}")
        # The folder gets its name only when it is complete, so that an interrupted download is never taken for one.
        partial.rename(jars)
    return jars
