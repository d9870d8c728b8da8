"""What a worker of a timeline may believe of its shards (W9).

The server keeps a worker's locks for as long as it hears of it. A worker that has not had an answer for half of that
time may have lost them: it then starts no handler and acks nothing, until an answer tells it which shards it holds, and
by which fence. What it took under another fence is no longer its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from angelhair import limits
from angelhair.client.values import Share

LONG_AGO = float("-inf")


class _Known(NamedTuple):
    """One value, so that whoever reads it from another thread sees all of it or nothing."""

    fences: Mapping[int, int]
    sure_until: float


class Locks:
    """Times are seconds of the worker's own monotonic clock."""

    def __init__(self) -> None:
        self.lock_seconds: float | None = None
        """None before the first answer."""
        self._known = _Known({}, LONG_AGO)

    def touched(self, share: Share, asked_at: float) -> None:
        """Counts from when it was asked: the answer may have been on its way for long."""
        self.lock_seconds = share.lock
        sure_seconds = share.lock * limits.TIMELINE_SURE_SHARE
        if share.shards:
            # Who holds none has nothing to lose.
            sure_seconds = min(share.left, sure_seconds)
        self._known = _Known(dict(share.shards), asked_at + sure_seconds)

    @property
    def fences(self) -> Mapping[int, int]:
        return self._known.fences

    def are_sure(self, now: float) -> bool:
        return now < self._known.sure_until

    def hold(self, shard: int, fence: int | None, now: float) -> bool:
        """Surely, and since it was taken under this fence; None is whatever the next answer says."""
        known = self._known
        if now >= known.sure_until:
            return False
        return fence is None or known.fences.get(shard) == fence

    def lost(self, shard: int, fence: int | None) -> bool:
        """Whether the last answer says that the shard is not held any more, or was taken anew."""
        return fence is not None and self._known.fences.get(shard) != fence

    @property
    def touch_seconds(self) -> float:
        """How long after a touch the next one is due."""
        if self.lock_seconds is None:
            return 0.0
        seconds = self.lock_seconds * limits.TIMELINE_TOUCH_SHARE
        return seconds if self._known.fences else min(seconds, limits.TIMELINE_SEARCH_SECONDS)
