"""The books of a load run: what became of every message, and how long things took."""

from __future__ import annotations

import math
from collections import Counter
from enum import IntFlag
from typing import Any

GROWTH = 1.02
"""From one class of durations to the next: quantiles are right within 2 %, in as little memory as a few numbers."""

SHORTEST_MS = 0.01

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Durations:
    """Counts durations by their size."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._longest_ms = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        milliseconds = max(seconds * 1000, SHORTEST_MS)
        self._counts[math.ceil(math.log(milliseconds / SHORTEST_MS) / math.log(GROWTH))] += times
        self._longest_ms = max(self._longest_ms, milliseconds)

    def quantile_ms(self, share: float) -> float | None:
        """Not more than this for such a share of all; None when there are none."""
        wanted = math.ceil(share * self._counts.total())
        seen = 0
        for step in sorted(self._counts):
            seen += self._counts[step]
            if seen >= wanted:
                return round(min(SHORTEST_MS * GROWTH**step, self._longest_ms), 3)
        return None

    def summary_ms(self) -> dict[str, float | None]:
        found = {name: self.quantile_ms(share) for name, share in QUANTILES.items()}
        return {**found, "max": round(self._longest_ms, 3) if self._counts else None}


class Fate(IntFlag):
    """What is known of one message."""

    PUT = 1
    UNKNOWN = 2
    """Its put has an unknown outcome: it may come, or not."""
    RECEIVED = 4
    ACKED = 8


class Accounts:
    """One byte for each message, by its number."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self._fates = bytearray(wanted)
        self.counts: Counter[str] = Counter()
        self.puts = Durations()
        self.deliveries = Durations()
        self.acks = Durations()
        self.drained = False
        """The server has been asked, and the queue holds nothing any more: what has not come will not come."""

    def put(self, number: int, seconds: float) -> None:
        self._fates[number] |= Fate.PUT
        self.counts["sent"] += 1
        self.puts.add(seconds)

    def not_put(self, number: int, unknown: bool) -> None:
        if unknown:
            self._fates[number] |= Fate.UNKNOWN
        self.counts["unknown" if unknown else "refused"] += 1

    def received(self, number: int, seconds: float) -> None:
        if self._fates[number] & Fate.RECEIVED:
            self.counts["doubled"] += 1
            return
        self._fates[number] |= Fate.RECEIVED
        self.counts["received"] += 1
        self.deliveries.add(seconds)

    def acked(self, number: int) -> None:
        if not self._fates[number] & Fate.ACKED:
            self._fates[number] |= Fate.ACKED
            self.counts["acked"] += 1

    def foreign(self) -> None:
        """A message that is none of this run's."""
        self.counts["foreign"] += 1

    @property
    def not_received(self) -> int:
        """Confirmed, and never received."""
        return sum(bool(fate & Fate.PUT) and not fate & Fate.RECEIVED for fate in self._fates)

    @property
    def lost(self) -> int:
        """Confirmed, never received, and provably not there."""
        return self.not_received if self.drained else 0

    @property
    def not_seen(self) -> int:
        """Confirmed and not received; it may well come yet."""
        return 0 if self.drained else self.not_received

    @property
    def not_acked(self) -> int:
        return sum(bool(fate & Fate.RECEIVED) and not fate & Fate.ACKED for fate in self._fates)

    @property
    def settled(self) -> bool:
        """Everything that was confirmed has been received and acked."""
        return self.counts["acked"] >= self.counts["sent"] and not self.not_received and not self.not_acked

    @property
    def good(self) -> bool:
        return self.counts["sent"] == self.wanted and self.settled

    def summary(self) -> dict[str, Any]:
        names = ("sent", "unknown", "refused", "received", "acked")
        return {
            "wanted": self.wanted,
            **{name: self.counts[name] for name in names},
            "lost": self.lost,
            "not_seen_yet": self.not_seen,
            "not_acked": self.not_acked,
            "doubled": self.counts["doubled"],
            "foreign": self.counts["foreign"],
        }
