"""The jars that Spark is measured beside, through Maven, once: SQLite's JDBC driver and the Cassandra connector. They
are kept where Cassandra's own are (`cluster/jars.py`), in a folder that is named after what `pom.xml` asks for."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

from cluster.jars import FETCH_TIMEOUT_SECONDS, ComponentMissing, cache_directory

POM = Path(__file__).with_name("pom.xml")

NEEDED = ("sqlite-jdbc-*.jar", "spark-cassandra-connector_*.jar")

NAME_CHARACTERS = 12


def fetch_spark_jars() -> list[Path]:
    """All of them. The first call on a machine downloads them; two calls at once share one download."""
    name = hashlib.sha256(POM.read_bytes()).hexdigest()[:NAME_CHARACTERS]
    cache = cache_directory().with_name(f"spark-{name}")
    jars = cache / "lib"
    if not jars.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with open(cache / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not jars.is_dir():
                _fetch(cache / "lib.partial").rename(jars)
    return sorted(jars.glob("*.jar"))


def _fetch(partial: Path) -> Path:
    """The folder gets its name only when it is complete, so that an interrupted download is never taken for one."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ComponentMissing("what Spark is measured beside comes through Maven, and there is no `mvn` here")
    shutil.rmtree(partial, ignore_errors=True)
    fetched = subprocess.run(
        [
            maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime",
            f"-DoutputDirectory={partial}",
        ],
        check=False, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS,
    )
    if fetched.returncode != 0 or not all(any(partial.glob(pattern)) for pattern in NEEDED):
        said = f"{fetched.stdout}{fetched.stderr}"
        raise ComponentMissing(f"Maven could not fetch what Spark is measured beside:\n{said}")
    return partial
