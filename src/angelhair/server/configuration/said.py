"""Who said what, before anybody has judged it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from angelhair.server.configuration.fields import Field


class Layer(IntEnum):
    """The higher one wins."""

    DEFAULT = 0
    FILE = 1
    ENVIRONMENT = 2
    FLAG = 3


@dataclass(frozen=True, slots=True)
class Origin:
    layer: Layer
    name: str
    """How it is called there: `--port`, `CASSANDRA_PORT`, `/data/conf/a.yaml: port`; empty for a default."""

    def __str__(self) -> str:
        return self.name or "default"


DEFAULT = Origin(Layer.DEFAULT, "")


@dataclass(frozen=True, slots=True)
class Said:
    """One value from one place, as it stands there."""

    field: str
    origin: Origin
    raw: object

    def value(self, field: Field) -> Any:
        """Raises `Wrong`."""
        if self.origin.layer is Layer.FILE:
            return field.kind.from_yaml(self.raw)
        if isinstance(self.raw, bool):
            return self.raw
        return field.kind.from_text(str(self.raw))

    def shown(self, field: Field) -> str:
        """For complaints."""
        if field.secret:
            return "its value"
        if isinstance(self.raw, str):
            return repr(self.raw)
        if isinstance(self.raw, bool):
            return str(self.raw).lower()
        return str(self.raw) if isinstance(self.raw, int | float) else "what stands there"


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that was said and does not count."""

    origin: Origin
    why: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.why}"


def is_unset(raw: object, field: Field | None) -> bool:
    """An empty value is unset. Blanks are empty too, except where they may be a password."""
    if raw is None:
        return True
    if isinstance(raw, str):
        return not raw if field is not None and field.secret else not raw.strip()
    return False
