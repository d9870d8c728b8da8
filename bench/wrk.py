"""wrk, a load generator that takes little of the machine, with the requests of `sqs.lua`.

The machine's own is taken if there is one; else Debian's package is fetched once and unpacked beside the jars, without
installing anything.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster.maven import ComponentMissing, cache_root

SCRIPT = Path(__file__).with_name("sqs.lua")
PACKAGES = ("wrk", "libluajit-5.1-2", "libluajit-5.1-common")
NAME = "wrk-debian"
FETCH_TIMEOUT_SECONDS = 300
MARGIN_SECONDS = 60
"""By so much it may take longer than it was told to."""


@dataclass(frozen=True)
class Wrk:
    command: str
    libraries: str


@dataclass(frozen=True)
class Loaded:
    """What a run of wrk says of itself."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    deleted: int
    """Messages, by as many `deletes`."""
    deletes: int
    filled: int
    """Receives that got something."""

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def dry(self) -> int:
        """Receives that got nothing; those that were under way in the end are among them."""
        return self.requests - self.deletes - self.filled


def fetch_wrk() -> Wrk:
    if (installed := shutil.which("wrk")) is not None:
        return Wrk(installed, "")
    place = cache_root() / NAME
    if not place.is_dir():
        if shutil.which("apt-get") is None:
            raise ComponentMissing("the load comes from wrk, and there is neither `wrk` nor `apt-get` on this machine")
        partial = place.with_name(f"{NAME}.{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _run(["apt-get", "download", *PACKAGES], partial)
        for package in partial.glob("*.deb"):
            _run(["dpkg", "-x", str(package), str(partial)], partial)
        try:
            partial.rename(place)
        except OSError:
            # Somebody else was faster.
            shutil.rmtree(partial)
    (library,) = place.glob("usr/lib/*/libluajit-5.1.so.2")
    return Wrk(str(place / "usr" / "bin" / "wrk"), str(library.parent))


def _run(command: list[str], folder: Path) -> None:
    ran = subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS
    )
    if ran.returncode != 0:
        raise ComponentMissing(f"wrk could not be fetched (has `apt-get update` ever been run?):\n{ran.stderr}")


def load(wrk: Wrk, url: str, what: str, queue_url: str, connections: int, seconds: float) -> Loaded:
    """Whatever was refused makes the figures worthless."""
    command = [
        wrk.command, "--threads", "1", "--connections", str(connections), "--duration", f"{seconds:g}s",
        "--timeout", "30s", "--script", str(SCRIPT), url, "--", what, queue_url,
    ]
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=seconds + MARGIN_SECONDS,
        env={**os.environ, "LD_LIBRARY_PATH": wrk.libraries},
    )
    lines = ran.stdout.strip().splitlines()
    if ran.returncode != 0 or not lines or not lines[-1].startswith("{"):
        raise RuntimeError(f"wrk failed: {ran.stdout}{ran.stderr}")
    said = json.loads(lines[-1])
    if said.pop("failed"):
        raise RuntimeError(f"requests were refused: {ran.stdout}")
    return Loaded(**said)
