"""A timeline and its shards: a shard is a lane, with rows by time, a row that says how far it is, and a lock.

    mark      rows at or before this time are no longer put: who finds its own there puts it again later      (R8)
    last      the checkpoint: rows up to this key are processed                                               (W6)
    fence     grows with every holder; what an earlier one sends is refused                                   (W5)
    beat      grows with every change of the row, so that (fence, beat) names one state of it

What a server remembers of a shard is `LaneView`; of the consumers that it speaks for, `Sessions`. Who holds a shard has
its window in memory: what is lost with it is given again from the checkpoint on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Clock, Moment
from angelhair.engine import places
from angelhair.engine.identities import Identities
from angelhair.engine.store import Partition, Store
from angelhair.engine.timeline.window import Held
from angelhair.model import QueueSettings

OWN = "~"
"""What the names of consumers begin with that are servers themselves, for all who do not name one."""


@dataclass(slots=True)
class LaneView:
    held: Held | None = None
    indexed: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """Rows of the index that are known to be there: by group, a bit for each."""
    watched: tuple[str, int, int] | None = None
    """Holder, fence and beat of a lock that is not ours."""
    watched_since_ms: int = 0
    mark_ms: int = 0
    """The mark, as a put has seen it last."""
    row_bytes: int = 0
    """How large rows have been, for how many to read at once."""
    looked_ms: int | None = None
    """When it was last looked for what must be renewed or may go."""
    renewed: str | None = None
    """How far a look that is not done has come."""
    tended_ms: int | None = None
    """When it was last looked whether something of it may go."""
    drained_ms: int | None = None
    """When it was last looked whether nothing is left in it."""

    def earliest_due_ms(self) -> int | None:
        return None if self.held is None else self.held.due_ms()

    def knows(self, group: str, bit: int) -> bool:
        return bool(self.indexed.get(group, 0) >> bit & 1)

    def remember(self, group: str, bit: int) -> None:
        self.indexed[group] = self.indexed.get(group, 0) | 1 << bit
        self.indexed.move_to_end(group)
        if len(self.indexed) > limits.TIMELINE_INDEX_KNOWN:
            self.indexed.popitem(last=False)


@dataclass(slots=True)
class Session:
    """A consumer that this server speaks for."""

    consumer: str
    holder: str
    most: int | None = None
    heard_ms: int = 0
    touched_ms: int | None = None
    beat: int = 0
    touching: bool = False
    left: bool = False
    """It said goodbye: what is under way in its name gives back what it takes."""


class Aside(NamedTuple):
    """Where a message lies that was set aside, and the delivery that it was set aside from."""

    place: tuple[int, str]
    fence: int
    delivery: int
    given: bool
    """Whether it was given where it lay; else it had been set aside before, and only waited there."""


@dataclass(slots=True)
class Sessions:
    by_name: dict[str, Session] = field(default_factory=dict)
    others: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """By name, of all consumers: holder and beat as last seen, and since when on our own clock."""
    seconds: OrderedDict[int, int] = field(default_factory=OrderedDict)
    """By second: how many messages this server put there."""
    aside: OrderedDict[tuple[int, str], Aside] = field(default_factory=OrderedDict)
    """Messages that were set aside, by where they lay when they were given."""
    done: OrderedDict[tuple[int, str], None] = field(default_factory=OrderedDict)
    """Messages set aside that were acked since."""
    extended: OrderedDict[tuple[int, str], int] = field(default_factory=OrderedDict)
    """Messages set aside whose consumers asked for more time since; until when on our own clock."""
    turn: int = 0
    aside_count: int = 0
    dead_count: int = 0
    """How many this server has set aside: written again at a later time, or moved to the dead letters."""

    def counted(self, second: int) -> int:
        """How many this server has put to that second before."""
        return self.seconds.get(second, 0)

    def count(self, second: int) -> None:
        self.seconds[second] = self.counted(second) + 1
        if len(self.seconds) > limits.TIMELINE_SECONDS:
            self.seconds.popitem(last=False)

    def set_aside(self, was: tuple[int, str], aside: Aside) -> None:
        self.aside_count += 1
        earlier = self.aside.pop(was, None)
        if earlier is not None:
            self.finish(earlier.place)
        self.aside[was] = aside
        if len(self.aside) > limits.TIMELINE_ASIDE:
            self.aside.popitem(last=False)

    def moved(self, was: tuple[int, str]) -> Aside | None:
        """Where a message lies that was given there, if it was set aside; perhaps again, and not given in between."""
        aside = self.aside.get(was)
        while aside is not None and (further := self.aside.get(aside.place)) is not None:
            if further.given:
                break
            aside = aside._replace(place=further.place)
        return aside

    def extend(self, place: tuple[int, str], until_ms: int) -> None:
        self.extended[place] = until_ms
        if len(self.extended) > limits.TIMELINE_ASIDE:
            self.extended.popitem(last=False)

    def finish(self, place: tuple[int, str]) -> None:
        self.done[place] = None
        if len(self.done) > limits.TIMELINE_ASIDE:
            self.done.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Line:
    """One incarnation of a timeline, as a verb needs it."""

    store: Store
    account: str
    name: str
    incarnation: str
    secret: bytes = field(repr=False)
    settings: QueueSettings
    states: Mapping[int, str]
    """By lane, whether it takes puts."""
    open: tuple[int, ...]
    server: str
    identities: Identities
    clock: Clock
    trusts_clock: Callable[[Moment], bool]
    sessions: Sessions
    view: Callable[[int], LaneView]
    reload: Callable[[], Awaitable[Line]]
    """As the catalog has it. Raises `QueueGone` if it is there no more in this incarnation."""

    @property
    def lanes(self) -> tuple[int, ...]:
        return tuple(self.states)

    def dues(self, lane: int, part: int) -> Partition:
        return places.dues(self.incarnation, lane, part)

    def spans(self, lane: int) -> Partition:
        return places.spans(self.incarnation, lane)

    def parts(self, lane: int, span: int) -> Partition:
        return places.parts(self.incarnation, lane, span)

    def shard(self, lane: int) -> Partition:
        return places.shard(self.incarnation, lane)

    def sequence(self, lane: int) -> Partition:
        return places.sequence(self.incarnation, lane)

    def part_of(self, time_ms: int) -> int:
        return time_ms // self.settings.part_ms

    def end_of(self, part: int) -> int:
        """The last millisecond of a part."""
        return (part + 1) * self.settings.part_ms - 1

    @property
    def lead_ms(self) -> int:
        """How far ahead of now the mark is raised with every touch, so that no message needs a raise of its own. Where
        producers write further ahead than that, whatever clocks may differ by: a row that meets the mark is put twice,
        and given twice if it is found."""
        ahead_ms = self.settings.producer_delay_ms - 2 * limits.CLOCK_ERROR_MS
        return max(0, min(ahead_ms, self.settings.lock_ms)) // 2

    def held(self, lane: int) -> Held | None:
        return self.view(lane).held

    def all_held(self) -> list[Held]:
        return [held for lane in self.lanes if (held := self.view(lane).held) is not None]

    def held_by(self, session: Session) -> list[Held]:
        return [held for held in self.all_held() if held.holder == session.holder]

    async def time_ms(self) -> int:
        """Now: by our own wall clock, or the store's when ours is not known to be right (R5)."""
        now = self.clock.now()
        return now.wall_ms if self.trusts_clock(now) else await self.store.time_ms()
