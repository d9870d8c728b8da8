"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from angelhair.server.configuration import Resolved, SettingsRefused, resolve

NOWHERE = Path("/nowhere/conf")
"""In place of /data/conf, which may be there on somebody's machine."""


def read(
    environment: Mapping[str, str] | None = None, directory: Path = NOWHERE, **flags: str | bool
) -> Resolved:
    return resolve(flags, environment or {}, directory)


def problems(
    environment: Mapping[str, str] | None = None, directory: Path = NOWHERE, **flags: str | bool
) -> tuple[str, ...]:
    with pytest.raises(SettingsRefused) as caught:
        read(environment, directory, **flags)
    return caught.value.problems


def conf(directory: Path, text: str, name: str = "angelhair.yaml") -> Path:
    """Writes a file and returns its directory, as one mounts it."""
    (directory / name).write_text(text, encoding="utf-8")
    return directory
