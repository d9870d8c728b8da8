"""Jars through Maven, once: a `pom.xml` says which, and they are kept between runs in ~/.cache/angelhair, or where the
environment variable ANGELHAIR_CACHE says. Maven keeps copies of its own, as it always does, in ~/.m2."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

FETCH_TIMEOUT_SECONDS = 900
"""Some 70 MB through a slow mirror; longer than that is a hang."""

HASH_CHARACTERS = 12


class ComponentMissing(RuntimeError):
    """Something that is needed is not on this machine; the message says what."""


def cache_root() -> Path:
    configured = os.environ.get("ANGELHAIR_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "angelhair"


def versioned(name: str, pom: Path) -> str:
    """A name that changes with what the pom asks for."""
    return f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:HASH_CHARACTERS]}"


def fetch(pom: Path, name: str, what: str, needed: Sequence[str]) -> Path:
    """The folder with all jars that the pom asks for, kept under this name; `needed` must be among them. The first call
    on a machine downloads them; two calls at once share one download."""
    cache = cache_root() / name
    jars = cache / "lib"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise ComponentMissing(f"{what} comes through Maven, and there is no `mvn` on this machine")
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if jars.is_dir():
            return jars
        partial = cache / "lib.partial"
        shutil.rmtree(partial, ignore_errors=True)
        fetched = subprocess.run(
            [
                maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime",
                f"-DoutputDirectory={partial}",
            ],
            check=False, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS,
        )
        if fetched.returncode != 0 or not all(any(partial.glob(pattern)) for pattern in needed):
            raise ComponentMissing(f"Maven could not fetch {what}:\n{fetched.stdout}{fetched.stderr}")
        # The folder gets its name only when it is complete, so that an interrupted download is never taken for one.
        partial.rename(jars)
    return jars
