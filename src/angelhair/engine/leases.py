"""A lease by conditional writes: who does a lane's background work, for speed only (A11, R5).

A holder beats by raising `beat`. Whoever has watched the same beat for the lease's duration *on its own monotonic
clock* may take over with the next fencing number. No wall clock is compared, so no skew steals or prolongs a lease.
Two holders at once cannot be ruled out (one may be asleep); all they do is conditional, so they do no harm.

A server whose wall clock is wrong may do only part of the work (R5). It is a reluctant holder: now and then it
stands aside for the time of a lease, so that a server with a good clock takes over if there is any, and goes on if
there is none.

Of a queue with several lanes every server should hold its share: it puts and receives there first, and meets nobody.
So a server takes a lease that has not lapsed from one that holds at least two more of the queue's leases than it does
itself. It has no more than the other afterwards, so nobody takes it back, and shares end up one apart at most. What it
has seen of the others may be seconds old, and by then others may have taken their shares: it looks at all of them
again before it takes one.

And it takes a lease that has not lapsed from a server that was among the members and is no more (`members.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from angelhair import limits
from angelhair.clock import Clock, Moment
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, Partition, Refused, RowChange, Span, Store, Values
from angelhair.errors import Unavailable


@dataclass(slots=True)
class Lease:
    """What one server knows about one lease."""

    partition: Partition
    role: str
    holder: str
    duration_ms: int = limits.LEASE_MS
    beat_every_ms: int = limits.LEASE_BEAT_MS
    held_fence: int | None = None
    _taken_ms: int = 0
    _beat: int = 0
    _confirmed_ms: int = 0
    _watched: tuple[str, int, int] | None = None
    _watched_since_ms: int = 0
    _watched_duration_ms: int = 0

    def held(self, now: Moment) -> bool:
        """Whether this server may believe that it holds the lease."""
        return self.held_fence is not None and now.monotonic_ms - self._confirmed_ms < self.duration_ms

    @property
    def watched_holder(self) -> str | None:
        """Whose lease this server is watching; None if it is our own, or nobody's."""
        return self._watched[0] or None if self._watched is not None else None

    async def keep(
        self, store: Store, clock: Clock, reluctant_ms: int | None = None, losing: frozenset[str] = frozenset()
    ) -> bool:
        """Takes, renews, watches or leaves the lease, whichever is due; says whether it is held.

        `reluctant_ms`: after how long a reluctant holder stands aside; None for one that is not.
        `losing`: holders from whom it is taken though it has not lapsed.
        """
        now = clock.now()
        if self.held_fence is not None:
            if reluctant_ms is not None and now.monotonic_ms - self._taken_ms >= reluctant_ms:
                await self.release(store, now)
                return False
            if self.held(now) and now.monotonic_ms - self._confirmed_ms < self.beat_every_ms:
                return True
            return await self._change(
                store, now, self.holder, self.held_fence, self._beat, self.held_fence, self._beat + 1
            )
        (found,) = await store.read([Span(self.partition, self.role, self.role)])
        # What was seen is dated after it was seen: a watch that began too early would end too early.
        seen = clock.now()
        row = found.rows[0].values if found.rows else {}
        return await self._consider(store, seen, row, reluctant_ms is not None, losing)

    async def release(self, store: Store, now: Moment) -> None:
        """Gives the lease up so that another server need not wait for it to lapse."""
        if self.held_fence is None:
            return
        fence, self.held_fence = self.held_fence, None
        await change_one(store, self._move(self.holder, fence, self._beat, "", fence, self._beat + 1))

    async def _consider(
        self, store: Store, now: Moment, row: Values, reluctant: bool, losing: frozenset[str]
    ) -> bool:
        holder, fence, beat = row.get("holder"), row.get("fence"), row.get("beat")
        if fence is None:
            return await self._change(store, now, None, None, None, 1, 1)
        assert isinstance(holder, str) and isinstance(fence, int) and isinstance(beat, int)
        if holder == self.holder or (holder in {"", *losing} and not reluctant):
            return await self._change(store, now, holder, fence, beat, fence + 1, beat + 1)
        self.see(row, now)
        if now.monotonic_ms - self._watched_since_ms < self._watched_duration_ms:
            return False
        return await self._change(store, now, holder, fence, beat, fence + 1, beat + 1)

    def see(self, row: Values, now: Moment) -> None:
        """Watches another's lease; anew if it has changed since it was last seen."""
        holder, fence, beat = row.get("holder"), row.get("fence"), row.get("beat")
        if not isinstance(holder, str) or not isinstance(fence, int) or not isinstance(beat, int):
            return
        if holder == self.holder:
            self._watched = None
        elif (holder, fence, beat) != self._watched:
            duration = row.get("duration")
            self._watched, self._watched_since_ms = (holder, fence, beat), now.monotonic_ms
            self._watched_duration_ms = duration if isinstance(duration, int) else self.duration_ms

    async def _change(
        self,
        store: Store,
        now: Moment,
        holder: str | None,
        fence: int | None,
        beat: int | None,
        new_fence: int,
        new_beat: int,
    ) -> bool:
        outcome = await change_one(store, self._move(holder, fence, beat, self.holder, new_fence, new_beat))
        if isinstance(outcome, Refused):
            row = outcome.rows.get(self.role, {})
            if (row.get("holder"), row.get("fence"), row.get("beat")) != (self.holder, new_fence, new_beat):
                self.held_fence, self._watched = None, None
                return False
        elif not isinstance(outcome, Applied):
            # Unknown: go on believing until the lease would have lapsed; the next beat decides.
            return self.held(now)
        if self.held_fence != new_fence:
            self._taken_ms = now.monotonic_ms
        self.held_fence, self._beat, self._confirmed_ms, self._watched = new_fence, new_beat, now.monotonic_ms, None
        return True

    def _move(
        self, holder: str | None, fence: int | None, beat: int | None, new_holder: str, new_fence: int, new_beat: int
    ) -> Change:
        expect: Values = {"holder": holder, "fence": fence, "beat": beat}
        values: Values = {"holder": new_holder, "fence": new_fence, "beat": new_beat, "duration": self.duration_ms}
        return Change(self.partition, [RowChange(self.role, expect, values)])


async def richer_holders(store: Store, clock: Clock, leases: Sequence[Lease]) -> frozenset[str]:
    """Who holds at least two more of these leases than this server, as far as they can be read."""
    if not _richer(leases, clock.now()):
        return frozenset()
    held = [lease for lease in leases if lease.held_fence is not None]
    read = await _read_again(store, clock, [lease for lease in leases if lease.held_fence is None])
    return _richer([*held, *read], clock.now())


async def _read_again(store: Store, clock: Clock, leases: Sequence[Lease]) -> Sequence[Lease]:
    """Those that could be read. All in one call, and if that fails each by itself: one whose replicas are down must not
    keep a server from its share of the others."""
    try:
        found = await store.read([Span(lease.partition, lease.role, lease.role) for lease in leases])
    except Unavailable:
        if len(leases) <= 1:
            return []
        return [each for lease in leases for each in await _read_again(store, clock, [lease])]
    seen = clock.now()
    for lease, part in zip(leases, found, strict=True):
        lease.see(part.rows[0].values if part.rows else {}, seen)
    return leases


def _richer(leases: Sequence[Lease], now: Moment) -> frozenset[str]:
    mine = 0
    others: Counter[str] = Counter()
    for lease in leases:
        if lease.held(now):
            mine += 1
        elif lease.watched_holder is not None:
            others[lease.watched_holder] += 1
    return frozenset(holder for holder, count in others.items() if count >= mine + 2)
