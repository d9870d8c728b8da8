"""Which servers there are: each has a slot, a row that it beats in, and who watches the beats knows who lives (R5).

A slot is a row without an end that is used again: by who comes back to the place of one that died, or once its member
has said goodbye or fallen out. So whoever dies leaves nothing that must expire, no clock of any machine says that it
is dead, and the list is as long as there were ever servers at once.

A member has fallen out when its beat did not change for its own duration on the watcher's monotonic clock; time in
which the watcher did not look counts little. So a server that was asleep, or whose store was away, does not take all
others for dead. One that was wrongly thought dead is refused at its next beat and takes another slot.

Nothing rests on this list but speed: two servers may disagree on it for as long as a few beats.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Clock, Moment
from angelhair.engine import places
from angelhair.engine.settling import change_one, expect_decided
from angelhair.engine.store import Applied, Change, Refused, RowChange, Span, Store, Value, Values
from angelhair.errors import Unavailable

FREE = ""
"""Who is in a slot that nobody is in any more."""

EVERYWHERE = "all"
"""The servers of one store are one cluster."""


class Presence(NamedTuple):
    """What a server says of itself. Where `host`, `address` and `process` are the same, one has come in the place of
    the other: two cannot listen there at once."""

    address: str
    host: str
    process: int
    version: str
    started_at_ms: int


class Holdings(NamedTuple):
    """How much it works on, as it says with every beat."""

    lanes: int = 0
    shards: int = 0


class Member(NamedTuple):
    id: str
    """Of one process and one life of it; its leases have it too."""
    presence: Presence
    holdings: Holdings


@dataclass(slots=True)
class _Watch:
    member: Member
    beat: int
    duration_ms: int
    watched_ms: int = 0

    @property
    def lapsed(self) -> bool:
        return self.watched_ms >= self.duration_ms


class Members:
    """Who lives, as far as the slots that it was shown tell."""

    def __init__(self) -> None:
        self._watches: dict[int, _Watch] = {}
        self._seen_ms: int | None = None
        self._alive: dict[str, Member] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self.gone: frozenset[str] = frozenset()
        """Ids of those that were here, and said goodbye, fell out or were replaced. Not those that were never seen."""

    @property
    def alive(self) -> list[Member]:
        """In the same order on every server."""
        return [self._alive[identity] for identity in sorted(self._alive)]

    @property
    def lapsed(self) -> dict[int, Values]:
        """Slots of those that fell out, as they were seen."""
        return {
            slot: {"member": watch.member.id, "beat": watch.beat}
            for slot, watch in self._watches.items()
            if watch.lapsed
        }

    def see(self, slots: Mapping[int, Values], asked: Moment, seen: Moment) -> None:
        """The slots as they were at some time between the two. From when they were last seen to when they were asked
        for nothing has changed in those that are the same: so long they were watched."""
        since_ms = 0 if self._seen_ms is None else max(0, asked.monotonic_ms - self._seen_ms)
        self._seen_ms = seen.monotonic_ms
        watches: dict[int, _Watch] = {}
        for slot, row in slots.items():
            watch = _read(row)
            before = self._watches.get(slot)
            if watch is None:
                continue
            if before is not None and (before.member.id, before.beat) == (watch.member.id, watch.beat):
                watch.watched_ms = before.watched_ms + min(since_ms, limits.MEMBER_GAP_MS)
            watches[slot] = watch
        self._watches = watches
        alive = {watch.member.id: watch.member for watch in watches.values() if not watch.lapsed}
        self._part(alive)
        self._alive = alive

    def _part(self, alive: Mapping[str, Member]) -> None:
        left = [identity for identity in self._alive if identity not in alive]
        back = [identity for identity in self._gone if identity in alive]
        if not left and not back:
            return
        for identity in back:
            del self._gone[identity]
        self._gone.update(dict.fromkeys(left))
        while len(self._gone) > limits.MEMBERS_MAXIMUM:
            self._gone.popitem(last=False)
        self.gone = frozenset(self._gone)


class Membership:
    """One server's own slot, and what it sees of the others."""

    def __init__(self, store: Store, clock: Clock, identity: str, cluster: str = EVERYWHERE) -> None:
        self.members = Members()
        self.id = identity
        self.cluster = cluster
        self._store = store
        self._clock = clock
        self._slot: int | None = None
        self._beat = 0
        self._slots: dict[int, Values] = {}
        self._looks = 0
        self._latest = 0
        self._newcomer = True

    async def step(self, presence: Presence, holdings: Holdings) -> int:
        """Beats, or takes a slot; looks at the others; frees the slots of those that fell out. Returns in how many
        milliseconds to come back."""
        if self._slot is not None:
            await self.beat(holdings)
        await self.look()
        if self._slot is None:
            await self.announce(presence, holdings)
            await self.look()
        await self._free_lapsed()
        return limits.MEMBER_BEAT_MS

    async def look(self) -> list[Member]:
        """Who lives, by a look at the store now."""
        self._looks += 1
        number, asked = self._looks, self._clock.now()
        slots = await self._read_slots()
        if number > self._latest:
            # Of two looks at once the one that began later has seen more.
            self._latest = number
            self._slots = slots
            self.members.see(slots, asked, self._clock.now())
        return self.members.alive

    async def announce(self, presence: Presence, holdings: Holdings) -> None:
        """Takes a slot, after a look. Raises `Unavailable` if there is none to be had."""
        values: dict[str, Value] = {
            "member": self.id, "duration": limits.MEMBER_MS, **_said(presence), **holdings._asdict(),
        }
        for _ in range(limits.MEMBER_ROUNDS):
            slot = self._best_slot(presence)
            if slot is None:
                raise Unavailable(f"there are {limits.MEMBERS_MAXIMUM} servers already")
            row = self._slots.get(slot, {})
            beat = _whole(row, "beat")
            if row.get("member") == self.id:
                # An announcement whose answer was lost.
                self._slot, self._beat = slot, beat
                return
            refused = await self._change(slot, row, {**values, "beat": beat + 1})
            if refused is None:
                self._slot, self._beat, self._newcomer = slot, beat + 1, False
                self._slots[slot] = {**values, "beat": beat + 1}
                return
            self._slots[slot] = refused
        raise Unavailable("other servers were faster to take every slot")

    async def beat(self, holdings: Holdings) -> None:
        """Says that this server lives. Who has lost its slot has none afterwards."""
        await self._from_own({**holdings._asdict()})

    async def leave(self) -> None:
        """Says goodbye: from now on nobody counts this server."""
        await self._from_own({"member": FREE})
        self._slot = None

    async def _from_own(self, values: Mapping[str, Value]) -> None:
        for _ in range(limits.MEMBER_ROUNDS):
            if self._slot is None:
                return
            row: Values = {"member": self.id, "beat": self._beat}
            refused = await self._change(self._slot, row, {**values, "beat": self._beat + 1})
            if refused is None:
                self._beat += 1
                return
            if refused.get("member") == self.id:
                # A beat whose answer was lost, or that was given up: it has landed.
                self._beat = _whole(refused, "beat")
            else:
                self._slot = None

    async def _free_lapsed(self) -> None:
        """One of those that live does it for all: who is first in the list, on which they agree sooner or later."""
        alive = self.members.alive
        if alive and alive[0].id == self.id:
            for slot, row in self.members.lapsed.items():
                if slot != self._slot:
                    await self._change(slot, row, {"member": FREE, "beat": _whole(row, "beat") + 1})

    async def _change(self, slot: int, row: Values, values: Values) -> Values | None:
        """None when it is done; else what is in the slot."""
        expect = {"member": row.get("member"), "beat": row.get("beat")}
        partition = places.members(self.cluster, slot // limits.MEMBER_GROUP)
        outcome = expect_decided(await change_one(self._store, Change(partition, [RowChange(slot, expect, values)])))
        if isinstance(outcome, Applied):
            return None
        assert isinstance(outcome, Refused)
        found = outcome.rows.get(slot, {})
        wanted = (values.get("member", row.get("member")), values["beat"])
        # Ours, by a try before that was thought to be lost.
        return None if (found.get("member"), found.get("beat")) == wanted else found

    def _best_slot(self, presence: Presence) -> int | None:
        """One that is ours; else, at first, that of who was at this place before us; else one that nobody is in."""
        lapsed, free = self.members.lapsed, []
        for slot, row in self._slots.items():
            if row.get("member") == self.id:
                return slot
            watch = _read(row)
            if watch is None or (slot in lapsed and lapsed[slot]["beat"] == row.get("beat")):
                free.append(slot)
            elif self._newcomer and _same_place(watch.member.presence, presence):
                return slot
        if free:
            return min(free)
        return next((slot for slot in range(limits.MEMBERS_MAXIMUM) if slot not in self._slots), None)

    async def _read_slots(self) -> dict[int, Values]:
        """A group beyond those that were known is read with them: most looks are one call."""
        slots: dict[int, Values] = {}
        known = 1 + max(self._slots, default=0) // limits.MEMBER_GROUP
        most = limits.MEMBERS_MAXIMUM // limits.MEMBER_GROUP
        groups = range(min(known + 1, most))
        while groups:
            found = await self._store.read([Span(places.members(self.cluster, group)) for group in groups])
            slots |= {int(row.key): row.values for part in found for row in part.rows}
            groups = range(groups.stop, min(groups.stop + 1, most)) if found[-1].rows else range(0)
        return slots


def _read(row: Values) -> _Watch | None:
    """None for a slot that nobody is in."""
    member = row.get("member")
    if not isinstance(member, str) or member == FREE:
        return None
    said = Presence(
        str(row.get("address") or ""), str(row.get("host") or ""), _whole(row, "process"),
        str(row.get("version") or ""), _whole(row, "started_at"),
    )
    holdings = Holdings(_whole(row, "lanes"), _whole(row, "shards"))
    return _Watch(Member(member, said, holdings), _whole(row, "beat"), _whole(row, "duration"))


def _said(presence: Presence) -> dict[str, Value]:
    address, host, process, version, started_at_ms = presence
    return {"address": address, "host": host, "process": process, "version": version, "started_at": started_at_ms}


def _whole(row: Values, name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0


def _same_place(one: Presence, other: Presence) -> bool:
    return (one.host, one.address, one.process) == (other.host, other.address, other.process)
