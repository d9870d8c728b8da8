"""What happened in a simulated world, as its clients and servers saw it: the material that the checkers judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

CONFIRMED, UNKNOWN, REFUSED = "confirmed", "unknown", "refused"
"""What a client knows of a request: it happened; it may have, or may yet; it provably did not."""


@dataclass(slots=True)
class Put:
    """One put of one message. Its outcome is what its server answered, heard or not; unknown if there was no answer."""

    queue: str
    body: str
    key: str | None
    delay_ms: int
    started_us: int
    ended_us: int = 0
    outcome: str = UNKNOWN
    id: str | None = None
    group: str = ""
    priority: int = 0


@dataclass(slots=True)
class Delivered:
    """One delivery, recorded by the server that made it: its consumer may never have heard of it."""

    queue: str
    server: str
    id: str
    body: str
    number: int
    receipt: str
    asked_us: int
    answered_us: int
    visibility_ms: int
    origin: str
    group: str = ""
    priority: int = 0

    @property
    def place(self) -> tuple[str, str, str]:
        """The message: its queue, the incarnation that the receipt names, its id."""
        return self.queue, self.receipt[:12], self.id


@dataclass(slots=True)
class Settled:
    """One answer to an ack, recorded by the server that gave it."""

    queue: str
    receipt: str
    started_us: int
    ended_us: int
    outcome: str
    denied: bool = False
    """It was said not to have happened, and not because the receipt was no good."""


@dataclass(slots=True)
class Changed:
    """A change of visibility or body that was asked for. Its outcome is what its server answered, heard or not."""

    queue: str
    receipt: str
    visibility_ms: int | None
    """None when only the body is to change."""
    started_us: int
    outcome: str = UNKNOWN


@dataclass(slots=True)
class Cleared:
    """A purge or a deletion. `ended_us` is None when nobody knows whether or when it happened."""

    queue: str
    started_us: int
    ended_us: int | None
    deleted: bool


@dataclass(slots=True)
class History:
    puts: list[Put] = field(default_factory=list)
    deliveries: list[Delivered] = field(default_factory=list)
    acks: list[Settled] = field(default_factory=list)
    changes: list[Changed] = field(default_factory=list)
    cleared: list[Cleared] = field(default_factory=list)
    heard: set[tuple[str, str]] = field(default_factory=set)
    """(queue, body) of what consumers received."""
    asked_acks: Counter[str] = field(default_factory=Counter)
    """How often a receipt was sent in, answered or not."""
    true_acks: set[str] = field(default_factory=set)
    """The receipts of those acks that took effect in the store, whatever was answered."""
    bad_receipts: list[str] = field(default_factory=list)
    """Receipts that were issued and are said to be forged."""
    operations: int = 0
    putting: int = 0
    """Puts that servers are still at work on."""
    largest_skew_us: int = 0
    """How far any server's wall clock was from true time, if only for a moment."""
    undrained: list[str] = field(default_factory=list)
    """Bodies that were confirmed and had not been settled when the drain's patience ended."""
    mark_faults: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
