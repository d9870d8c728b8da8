"""How many messages a queue holds, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Stats:
    """Counts of messages. `oldest_age_ms` is the age of the oldest one that waits to be delivered."""

    visible: int = 0
    in_flight: int = 0
    delayed: int = 0
    dead: int = 0
    """Moved to the dead-letter queue, of those that are still in the queue's unfinished buckets; of a timeline, which
    has no buckets, what its dead-letter queue holds."""
    oldest_age_ms: int | None = None
    exact: bool = True
    archived: int = 0
    unarchived: int = 0
    """Buckets, of a queue with `archive`: in the lake; finished, and kept until they are."""
    partitions: int = 0
    duplicates: int = 0
    """Of a databag: how it is cut; messages that were served although they had been deleted."""

    def add(self, other: Stats) -> None:
        self.visible += other.visible
        self.in_flight += other.in_flight
        self.delayed += other.delayed
        self.dead += other.dead
        self.exact = self.exact and other.exact
        self.archived += other.archived
        self.unarchived += other.unarchived
        if other.oldest_age_ms is not None:
            self.oldest_age_ms = max(other.oldest_age_ms, self.oldest_age_ms or 0)
