"""Rows a second of several sides that take turns, round by round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

Side = Callable[[], int]
"""Does it, and says how many rows it was."""


class Timed:
    """Rates by name, in the order in which they were first taken."""

    def __init__(self) -> None:
        self.rates: dict[str, list[float]] = {}

    def add(self, name: str, rate: float) -> None:
        self.rates.setdefault(name, []).append(rate)

    def median(self, name: str) -> float:
        return statistics.median(self.rates[name])

    def ratio(self, name: str, beside: str) -> float:
        """The median of what the rounds say, each for itself."""
        pairs = zip(self.rates[name], self.rates[beside], strict=True)
        return statistics.median(rate / other for rate, other in pairs)

    def rows(self, unit: float = 1.0) -> list[tuple[str, ...]]:
        return [
            (name, f"{self.median(name) / unit:,.0f}", " ".join(f"{rate / unit:,.0f}" for rate in rates))
            for name, rates in self.rates.items()
        ]


def one_round(sides: Mapping[str, Side], number: int, into: Timed | None) -> None:
    """Every side once; every other round goes backwards, so that none is always the first."""
    found = {}
    for name in list(sides)[:: -1 if number % 2 else 1]:
        began = time.perf_counter()
        rows = sides[name]()
        found[name] = rows / (time.perf_counter() - began)
    if into is not None:
        for name in sides:
            into.add(name, found[name])
