"""Which release this is: the one place that knows, for whoever asks."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

NAME = "angelhair"
UNKNOWN = "0"
"""Neither installed nor in a checkout: somebody copied the package alone."""


def checkout() -> Path | None:
    """The source tree that this runs from; None where the package was installed away from it."""
    root = Path(__file__).resolve().parents[3]
    return root if _version_in(root) is not None else None


@cache
def version() -> str:
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        # `make serve` runs the source tree as it is, and installs only what it needs.
        return _version_in(Path(__file__).resolve().parents[3]) or UNKNOWN


def _version_in(root: Path) -> str | None:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["version"]) if project["name"] == NAME else None
    except (OSError, ValueError, KeyError):
        return None
