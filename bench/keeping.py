"""What a proof has done so far, kept in a file after every portion, so that a run that is cut off goes on."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.here import ROOT, now

FOLDER = ROOT / ".cache" / "prove"

LINE_SECONDS = 10.0
"""Between two lines of progress where they cannot be written over each other."""


@dataclass
class Kept:
    """One part of the proof. `figures` is all that the report will say; `failures` is what must not be."""

    name: str
    identity: str
    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    charts: dict[str, str] = field(default_factory=dict)
    """SVG by the last part of its file's name, as in the reports of benchmarks."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What a part needs to go on and the report does not say."""
    seconds: float = 0.0
    finished: str | None = None
    """When it came to its end."""

    @classmethod
    def load(cls, name: str, identity: str) -> Kept:
        """What was kept of the same code, or a new beginning."""
        path = cls._path(name)
        if path.exists():
            kept = cls(**json.loads(path.read_text()))
            if kept.identity == identity:
                return kept
        return cls(name, identity)

    def save(self) -> None:
        path = self._path(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self), indent=1))
        partial.replace(path)

    def finish(self) -> None:
        self.finished = now()
        self.save()

    def add(self, figure: str, more: float) -> None:
        self.figures[figure] = self.figures.get(figure, 0) + more

    @staticmethod
    def _path(name: str) -> Path:
        return FOLDER / f"{name}.json"


class Portion:
    """Times one portion of a part; what it did and how long it took are kept together, or not at all."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._kept.seconds += time.monotonic() - self._began
            self._kept.save()


class Progress:
    """One line per part: written over on a terminal, a new one now and then elsewhere."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = float("-inf")
        self._over = sys.stdout.isatty()

    def __call__(self, text: str) -> None:
        moment = time.monotonic()
        if self._over:
            print(f"\r\x1b[K{self._name}: {text}", end="", flush=True)
        elif moment - self._last >= LINE_SECONDS:
            print(f"{self._name}: {text}", flush=True)
            self._last = moment

    def end(self, text: str) -> None:
        print(f"\r\x1b[K{self._name}: {text}" if self._over else f"{self._name}: {text}", flush=True)
