"""What happened to a databag in a simulated world: as `history`, with what the store shows of locks and epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair.simulation.history import History


class Early(NamedTuple):
    """A lock that was taken while another on the same slices was not over, by the time that it named."""

    slices: tuple[int, int]
    at_us: int
    early_us: int
    duration_ms: int


@dataclass(slots=True)
class DatabagHistory(History):
    early: list[Early] = field(default_factory=list)
    locked: dict[int, list[int]] = field(default_factory=dict)
    """By id, when it was named in a lock that took effect."""
    deleted: set[str] = field(default_factory=set)
    """Ids whose deletion took effect in the store, whatever was answered."""
    ended_with: dict[str, int] = field(default_factory=dict)
    """Ids that were there and not deleted when their epoch was finished or dropped, and when that was."""
    epoch_faults: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    """In calm worlds: partitions that were served twice while another that had messages was not served once."""
    shown_duplicates: int = 0
    """What the store has shown to have been served twice, by the time that this could no longer be seen in it."""
    counted_duplicates: int = 0
    """As the databag says at the end."""
