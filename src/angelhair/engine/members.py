"""Which servers there are: each has a slot, a row that it beats in, and who watches the beats knows who lives (R5).

A slot is a row without an end that is used again: by who comes back to the place of one that died, or once its member
has said goodbye or fallen out. So whoever dies leaves nothing that must expire, no clock of any machine says that it
is dead, and the list is as long as there were ever servers at once.

A member has fallen out when its beat did not change for its own duration on the watcher's monotonic clock. Only who
beats itself judges others, by looks of which none is long after the one before; else it begins to watch anew. So a
server that was asleep, or whose store was away, does not take all others for dead. One that was wrongly thought dead is
refused at its next beat and takes another slot.

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
    since_ms: int
    """When it was first seen so, or when the watcher began anew, on its monotonic clock."""
    lapsed: bool = False


class Members:
    """Who lives, as far as the slots that it was shown tell."""

    def __init__(self) -> None:
        self._watches: dict[int, _Watch] = {}
        self._judged_ms: int | None = None
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

    def see(self, slots: Mapping[int, Values], asked: Moment, seen: Moment, judging: bool) -> None:
        """The slots as they were at some time between the two. One that is the same as before has not changed from when
        it was first seen so until it was asked for: so long it was watched."""
        watches: dict[int, _Watch] = {}
        steady = self.fresh(asked)
        for slot, row in slots.items():
            watch, before = _read(row, seen.monotonic_ms), self._watches.get(slot)
            if watch is None:
                continue
            if before is not None and (before.member.id, before.beat) == (watch.member.id, watch.beat):
                if judging and steady:
                    before.lapsed |= asked.monotonic_ms - before.since_ms >= before.duration_ms
                elif judging:
                    before.since_ms = seen.monotonic_ms
                watch = before
            watches[slot] = watch
        if judging:
            self._judged_ms = asked.monotonic_ms
        self._watches = watches
        alive = {watch.member.id: watch.member for watch in watches.values() if not watch.lapsed}
        self._part(alive)
        self._alive = alive

    @property
    def judged(self) -> bool:
        """Whether the others were ever judged."""
        return self._judged_ms is not None

    def fresh(self, now: Moment) -> bool:
        """Whether the others were judged a short while ago."""
        return self._judged_ms is not None and now.monotonic_ms - self._judged_ms <= limits.MEMBER_GAP_MS

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
        self._unsure = False
        """Whether an announcement may have landed of which we do not know."""

    @property
    def gone(self) -> frozenset[str]:
        """Those that were here and are no more, by a recent look: by now one that was may be back (R4)."""
        return self.members.gone if self.members.fresh(self._clock.now()) else frozenset()

    @property
    def mute(self) -> bool:
        """Whether this server has been one of the list, and has not got its beats through for a while: by now others
        may take it to be gone, and all that it takes from them they take back."""
        return self.members.judged and not self.members.fresh(self._clock.now())

    @property
    def size(self) -> int:
        """How many servers share the work, this one among them."""
        return len({self.id, *(member.id for member in self.members.alive)})

    def place(self) -> tuple[int, int]:
        """Our place among those who share the work, in an order that is the same for all; and how many they are."""
        everybody = sorted({self.id, *(member.id for member in self.members.alive)})
        return everybody.index(self.id), len(everybody)

    async def step(self, presence: Presence, holdings: Holdings) -> int:
        """Beats, or takes a slot; looks at the others; frees the slots of those that fell out. Returns in how many
        milliseconds to come back."""
        if self._slot is not None:
            await self.beat(holdings)
        if self._slot is None:
            await self.look()
            await self.announce(presence, holdings)
        # Who could not say that it lives has not come here: if the store takes no beats, nobody has died of it.
        await self.look(judging=True)
        await self._free_lapsed()
        return limits.MEMBER_BEAT_MS

    async def look(self, judging: bool = False) -> list[Member]:
        """Who lives, by a look at the store now. `judging`: who was watched for long enough has fallen out."""
        self._looks += 1
        number, asked = self._looks, self._clock.now()
        slots = await self._read_slots()
        if number > self._latest:
            # Of two looks at once the one that began later has seen more.
            self._latest, self._slots = number, slots
        self.members.see(self._slots, asked, self._clock.now(), judging)
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
                return self._settle(slot, beat)
            self._unsure = True
            refused = await self._change(slot, row, {**values, "beat": beat + 1})
            if refused is None:
                return self._settle(slot, beat + 1)
            self._unsure = False
            self._slots[slot] = refused
        raise Unavailable("other servers were faster to take every slot")

    def _settle(self, slot: int, beat: int) -> None:
        self._slot, self._beat, self._newcomer, self._unsure = slot, beat, False, False

    async def beat(self, holdings: Holdings) -> None:
        """Says that this server lives. Who has lost its slot has none afterwards."""
        await self._from_own({**holdings._asdict()})

    async def leave(self) -> None:
        """Says goodbye: from now on nobody counts this server."""
        if self._unsure:
            await self.look()
            for slot, row in self._slots.items():
                if row.get("member") == self.id:
                    self._settle(slot, _whole(row, "beat"))
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
            lapsed = [slot for slot in self.members.lapsed if slot != self._slot]
            for slot in lapsed[: limits.MEMBERS_FREED]:
                row = self.members.lapsed[slot]
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


def _read(row: Values, seen_ms: int = 0) -> _Watch | None:
    """None for a slot that nobody is in."""
    member = row.get("member")
    if not isinstance(member, str) or member == FREE:
        return None
    said = Presence(
        str(row.get("address") or ""), str(row.get("host") or ""), _whole(row, "process"),
        str(row.get("version") or ""), _whole(row, "started_at"),
    )
    holdings = Holdings(_whole(row, "lanes"), _whole(row, "shards"))
    return _Watch(Member(member, said, holdings), _whole(row, "beat"), _whole(row, "duration"), seen_ms)


def _said(presence: Presence) -> dict[str, Value]:
    address, host, process, version, started_at_ms = presence
    return {"address": address, "host": host, "process": process, "version": version, "started_at": started_at_ms}


def _whole(row: Values, name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0


def _same_place(one: Presence, other: Presence) -> bool:
    return (one.host, one.address, one.process) == (other.host, other.address, other.process)
