"""What happened to a timeline in a simulated world: as `history`, with due times, shards and fences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from angelhair.simulation.history import Delivered, History, Put

Shard = tuple[str, int]
"""A shard: the queue's incarnation and the lane."""


@dataclass(slots=True)
class DuePut(Put):
    due_us: int = 0
    """True time from which on it may be given."""
    by_delay: bool = False
    """The due time was reckoned by a server's clock."""


@dataclass(slots=True)
class Given(Delivered):
    """One delivery out of a timeline."""

    shard: Shard = ("", 0)
    fence: int = 0
    consumer: str | None = None
    skew_us: int = 0
    """How far its server's wall clock ever was from true time."""
    steady: bool = True
    """Its server was not halted while it answered, and its machine was never suspended: it knew how time went by."""


@dataclass(slots=True)
class Taken:
    """A shard went to somebody, in the store."""

    shard: Shard
    fence: int
    at_us: int
    lapsed: bool
    """It had another holder, who had not let go."""


@dataclass(slots=True)
class Passed:
    """A row that the checkpoint passed though it was not safe elsewhere at that instant: it has to have been acked."""

    shard: Shard
    id: str
    body: str
    at_us: int
    deliveries: int
    """As its row says: above 0 for one that was set aside before."""
    sent_back: bool = False
    """It had been a dead letter, and had gone back to the timeline by then."""


@dataclass(slots=True)
class SentBack:
    """A dead letter that was crossed off though it was not safe in a timeline at that instant."""

    id: str
    body: str
    at_us: int


@dataclass(slots=True)
class TimelineHistory(History):
    shard_faults: list[str] = field(default_factory=list)
    """What was wrong with the rows of shards, at the instant at which it came to be."""
    taken: list[Taken] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    sent_back: list[SentBack] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    """Shards of which more was given beyond the checkpoint than is allowed."""
    settling: Counter[str] = field(default_factory=Counter)
    """By body, how many acks of it were begun and not refused: what a dead server has not answered may be done."""

    def due_puts(self) -> Iterable[DuePut]:
        return (put for put in self.puts if isinstance(put, DuePut))

    def given(self) -> Iterable[Given]:
        return (delivery for delivery in self.deliveries if isinstance(delivery, Given))
