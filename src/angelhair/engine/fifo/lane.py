"""A lane of a fifo queue: one log, the state of its groups, its marks; and what one server remembers of it.

Of the marks a fifo lane has these; all but `purged` count buckets, or epochs:

    repair    buckets below are finished: every message in them is settled
    floor     buckets below are dropped, or about to be; nothing reads there                     (R14)
    dropped   buckets below are really gone
    purged    numbers below were purged
    epoch     which partition of the groups is in force; see epoch.py

Everything in `LaneView` is a hint that speeds things up. The refusal of a conditional write corrects it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.fifo.index import Index
from angelhair.engine.fifo.keys import Keys
from angelhair.engine.fifo.state import Entry, State
from angelhair.engine.lane import AnyLane
from angelhair.engine.marks import Marks, QueueGone, pointer_marks
from angelhair.engine.store import Partition, Slice, Span


@dataclass(slots=True)
class Tail:
    """The bucket at the log's end."""

    bucket: int
    token: str
    """Of its opening. A bucket that was dropped has lost it, and no other opening will ever have it again."""


@dataclass(slots=True)
class LaneView:
    tail: Tail | None = None
    keys: Keys | None = None
    behind: bool = False
    """The log was seen to go on beyond what `keys` knows."""
    index: Index = field(default_factory=Index)
    log_ended: bool = False
    """The last look at the log came to its end."""
    epoch: int | None = None
    ready: str = ""
    """The token of the epoch's beginning."""
    states: dict[str, State] = field(default_factory=dict)
    """By group, as last seen. One that is missing is taken for one without a row."""
    rows: int = 0
    """Rows that the epoch had when it was last read."""
    read_ms: int | None = None
    """When all rows were last read, on our own clock."""
    watched: OrderedDict[tuple[str, int], tuple[int, int, int]] = field(default_factory=OrderedDict)
    """By group and number: the delivery and time seen, and since when on our own clock they have not changed (R5)."""
    exhausted: dict[str, int] = field(default_factory=dict)
    """By group, the message at its head that has used up its deliveries."""
    dead_letters_missed_ms: int | None = None
    """When, on our own clock, the dead-letter queue was looked for and not there."""
    due_ms: int | None = None
    """When, on our own clock, something that is hidden now may be delivered."""
    last_bucket: int = 0
    """The log's last bucket when the marks were last read."""

    def earliest_due_ms(self) -> int | None:
        return self.due_ms

    def forget_log(self) -> None:
        """The log's end is looked up again, from the beginning of the window."""
        self.tail = self.keys = None

    def forget_epoch(self) -> None:
        self.epoch = None
        self.states = {}

    def watch(self, group: str, entry: Entry, now: Moment) -> int:
        """For how long this delivery has been seen as it is, on our own clock, in milliseconds."""
        seen = self.watched.get((group, entry.number))
        if seen is not None and seen[:2] == (entry.delivery, entry.visible_at):
            return now.monotonic_ms - seen[2]
        self.watched[group, entry.number] = (entry.delivery, entry.visible_at, now.monotonic_ms)
        if len(self.watched) > limits.WATCHED_ROWS:
            self.watched.popitem(last=False)
        return 0


@dataclass(frozen=True, slots=True)
class Lane(AnyLane):
    view: LaneView

    def log(self, bucket: int) -> Partition:
        return places.log(self.incarnation, self.number, bucket)

    def groups(self, epoch: int) -> Partition:
        return places.groups(self.incarnation, self.number, epoch)

    async def time_ms(self) -> int:
        """Now: by our own wall clock, or the store's when ours is not known to be right (R5). All that a fifo lane
        dates or compares is dated by this."""
        now = self.clock.now()
        return now.wall_ms if self.trusts_clock(now) else await self.store.time_ms()


async def read_marks(lane: Lane) -> Marks:
    """The lane as it stands. `next_id` is not among it: the log itself says where it ends."""
    sequence, pointers = await lane.store.read([Span(lane.sequence), Span(lane.pointers)])
    return marks_of(lane, sequence, pointers)


def marks_of(lane: Lane, sequence: Slice, pointers: Slice) -> Marks:
    lane.view.last_bucket = tail_of(lane, sequence).bucket
    marks = pointer_marks(pointers)
    lane.view.index.forget_below(max(lane.first_of(marks.repair), marks.purged))
    if lane.view.epoch is not None and lane.view.epoch != marks.epoch:
        lane.view.forget_epoch()
    return marks


def tail_of(lane: Lane, sequence: Slice) -> Tail:
    """Which bucket is at the log's end, by the lane's own row. Raises `QueueGone`."""
    row = sequence.rows[0].values if sequence.rows else {}
    bucket, token = row.get("next"), row.get("attempt")
    if not isinstance(bucket, int) or not isinstance(token, str) or row.get("deleted"):
        raise QueueGone(lane.queue)
    return Tail(bucket, token)
