"""What happened to topics in a simulated world, as its servers answered it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from angelhair.simulation.history import UNKNOWN

PUBLISH, SUBSCRIBE, UNSUBSCRIBE, DELETE, CREATE = "publish", "subscribe", "unsubscribe", "delete", "create"


@dataclass(slots=True)
class Deed:
    """One thing that was asked for. Its outcome is what its server answered, heard or not; its end, when the server
    was done with it or died."""

    verb: str
    topic: str
    what: str = ""
    """The body that was published, the queue that was subscribed."""
    group: str = ""
    started_us: int = 0
    ended_us: int | None = None
    """None: a server is still at it, or the request never arrived."""
    outcome: str = UNKNOWN
    effect: bool = True
    """False for what found nothing to do."""


@dataclass(slots=True)
class TopicHistory:
    deeds: list[Deed] = field(default_factory=list)
    arrived: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By queue and body, the ids under which it was delivered."""
    plain: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By queue and body, how often it was put there without a key."""
    keyed: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By queue and body, the ids that puts with a key were confirmed under."""
    dropped: list[str] = field(default_factory=list)
    """Publications that were dropped because a queue was said to be gone. None ever is."""
    operations: int = 0
    publishing: int = 0
    """Publications that servers are still at work on."""
    again: Counter[str] = field(default_factory=Counter)
    """By body, how often it was published beyond the first time, under the same key."""
