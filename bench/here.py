"""What a report says about where it comes from: the commit, whether it was changed, the machine."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import apsw

ROOT = Path(__file__).resolve().parents[1]

CODE = ("src", "tests", "cluster", "bench")
"""Folders whose changes a report mentions."""

SHORT_COMMIT = 12


def commit() -> str:
    return _git("rev-parse", "HEAD")[:SHORT_COMMIT] or "unknown"


def changed_files() -> list[str]:
    """Files of code that differ from the commit, new ones included."""
    return [line[3:] for line in _git("status", "--porcelain", "--", *CODE).splitlines()]


def identity(places: Sequence[str]) -> str:
    """A hash of all code in the folders and files: a proof that was cut off goes on only if none of it has changed."""
    found = hashlib.sha256()
    for place in places:
        paths = sorted([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))
        if not paths:
            raise FileNotFoundError(f"a proof rests on {place}, and nothing is there")
        for path in paths:
            found.update(f"{path.relative_to(ROOT)}\0".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def machine() -> str:
    return (
        f"{platform.system()} {platform.release()} on {platform.machine()}, {os.cpu_count()} cores, "
        f"{_memory_gigabytes()} GB of memory; {platform.python_implementation()} {platform.python_version()}, "
        f"SQLite {apsw.sqlite_lib_version()}"
    )


def busy() -> float:
    """How many programs wanted a core over the last minute, on average: a benchmark wants none beside itself."""
    return os.getloadavg()[0]


def _memory_gigabytes() -> int:
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)


def _git(*arguments: str) -> str:
    said = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    return said.stdout.rstrip("\n") if said.returncode == 0 else ""
