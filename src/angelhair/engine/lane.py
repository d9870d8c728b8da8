"""A lane, of whatever kind, as a verb needs it. What it holds, and what a server remembers of it, is its kind's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from angelhair.clock import Clock, Moment
from angelhair.engine import places
from angelhair.engine.identities import Identities
from angelhair.engine.store import Partition, Store
from angelhair.model import QueueSettings


@dataclass(frozen=True, slots=True)
class AnyLane:
    """One lane of one incarnation of a queue."""

    store: Store
    account: str
    queue: str
    incarnation: str
    secret: bytes = field(repr=False)
    settings: QueueSettings
    number: int
    server: str
    """Which server this is."""
    identities: Identities
    clock: Clock
    """For what must be dated after a store call, not before it: watching (R5), the beginning of invisibility (A2)."""
    trusts_clock: Callable[[Moment], bool]
    """Whether our wall clock was near the store's a short while ago and has not jumped since."""

    def bucket_of(self, number: int) -> int:
        return number // self.settings.bucket_size

    def first_of(self, bucket: int) -> int:
        return bucket * self.settings.bucket_size

    @property
    def sequence(self) -> Partition:
        return places.sequence(self.incarnation, self.number)

    @property
    def pointers(self) -> Partition:
        return places.pointers(self.incarnation, self.number)
