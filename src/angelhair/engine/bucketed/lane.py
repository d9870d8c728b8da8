"""A lane: one sequence of ids, its buckets and its marks; and what one server remembers of it.

Marks, in the order that always holds: floor ≤ repair ≤ settled ≤ final ≤ reader ≤ the bucket of the next id.

    reader    buckets below are closed: the reader has handed out, or left to repair, all that is there   (A5)
    final     buckets below have their `final` flag set: a put into them must be admitted                 (R1)
    settled   buckets below have been read after that, and what was found there was admitted
    repair    buckets below are finished: every message acked, dead, expired or never written             (A8, R3)
    floor     buckets below are dropped, or about to be; nothing reads there                              (R14)
    dropped   buckets below are really gone
    purged    ids below were purged
    archived  buckets below are in the lake
    erased    of ids below, some were erased: who writes there looks whether it was one of them  (see erase.py)
    wake_raised, wake_done   the wake index: see wake.py

Everything in `LaneView` is a hint that speeds things up. The refusal of a conditional write corrects it.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import places
from angelhair.engine.lane import AnyLane
from angelhair.engine.marks import Marks, QueueGone, pointer_marks
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.store import Partition, Slice, Span


class Candidate(NamedTuple):
    """A message that may be claimed, with what its claim is conditioned on."""

    number: int
    delivery: int | None
    """The deliveries so far; None when no state row is known to exist."""
    revision: int | None
    first_delivered_at: int | None
    body: bytes | None
    """None when it is still to be read."""
    attributes: str | None
    enqueued_at: int
    origin: str | None
    opened: str | None = None
    """The token of the bucket's opening, for a message without a state row: its claim is conditioned on it."""


@dataclass(slots=True)
class OpenBucket:
    """What a reader knows of a bucket that it has not closed."""

    token: str
    """Of the bucket's opening, read before any body was."""
    position: int
    """Ids from here on have not been looked for."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Runs of ids below the position that were looked for and not there."""
    gaps_looked_ms: int = 0
    passed_since_ms: int | None = None
    """Since when, on our own clock, the sequence was seen beyond this bucket."""
    stale: bool = False
    """Others claim here too: what was read is to be read again."""
    plain: set[int] = field(default_factory=set)
    """Ids under which a body without a key was met."""


@dataclass(slots=True)
class LaneView:
    """What one server remembers of one lane. All of it may be wrong but `finished`, `full` and `acked` (R4)."""

    next_id: int | None = None
    reservations_lost: int = 0
    """Times that another server was faster at reserving ids."""
    open: dict[int, OpenBucket] = field(default_factory=dict)
    fresh: deque[tuple[int, Candidate]] = field(default_factory=deque)
    """Never delivered, in order, with the bucket of each."""
    claiming: Counter[int] = field(default_factory=Counter)
    """Buckets with messages that are being claimed right now, by how many receives."""
    received_ms: int = 0
    """When a receive of this server last looked here, on our own clock."""
    reads_aside: int = 0
    """So many reads of new messages still begin in a bucket that is this server's own."""
    met_in: int | None = None
    """The bucket in which another server was faster last."""
    again: deque[tuple[int, Candidate]] = field(default_factory=deque)
    """Visible again."""
    due: list[tuple[int, int]] = field(default_factory=list)
    """A heap of (monotonic time, bucket): when to look into a bucket again."""
    scheduled: dict[int, int] = field(default_factory=dict)
    """The earliest entry of each bucket in `due`; later ones are made when it fires."""
    finished: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Buckets above the repair mark known to be finished."""
    full: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Buckets that were seen with a body under every id and no key among them: bodies do not change, and none can come
    late, so that repair needs to know no more of them than how many are settled."""
    acked: OrderedDict[int, int] = field(default_factory=OrderedDict)
    """By bucket: how many of its messages were settled by acks of this server, each of them for good."""
    watched: OrderedDict[int, tuple[int, int]] = field(default_factory=OrderedDict)
    """By id: the revision seen, and since when on our own clock it has not changed (R5)."""
    exhausted: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By id: delivery and revision of messages that have used up their deliveries."""
    dead_letters_missed_ms: int | None = None
    """When, on our own clock, the dead-letter queue was looked for and not there."""
    moving: dict[int, None] = field(default_factory=dict)
    """Ids whose move to another queue seems to stand still."""
    armed: OrderedDict[tuple[int, int], None] = field(default_factory=OrderedDict)
    """(slot, bucket) pairs known to be in the wake index."""
    index_read_to: int | None = None
    index_read_ms: int = 0
    index_caught_up: bool = True
    """Whether the last look came as far as the present."""
    index_seen: set[tuple[int, int, str, int]] = field(default_factory=set)
    """Rows of the wake index that the last look brought."""
    passed_to: int = 0
    """Ids below have been handed out or purged, as the marks had it when they were last read."""
    typical_body_bytes: int | None = None
    """None before the first. Follows large bodies at once and small ones slowly: it decides how much is read."""

    @property
    def portion(self) -> int:
        """How many messages are read into memory at once."""
        return max(1, limits.PORTION_BYTES // (self.typical_body_bytes or limits.FIRST_BODY_BYTES))

    def note_size(self, body_bytes: int) -> None:
        typical = self.typical_body_bytes or body_bytes
        # Large ones count at once: a read that is too large costs memory, one that is too small only a round trip.
        weight = 2 if body_bytes > typical else 16
        self.typical_body_bytes = max(1, typical + (body_bytes - typical) // weight)

    def handed_out(self) -> int:
        """Up to which id messages have been handed out, for all that is known: by others in whole buckets."""
        if self.fresh:
            return max(self.passed_to, self.fresh[0][1].number)
        return max([self.passed_to, *[opened.position for opened in self.open.values()]])

    def note_passed(self, marks: Marks, bucket_size: int) -> None:
        self.passed_to = max(self.passed_to, marks.reader * bucket_size, marks.purged)

    def earliest_due_ms(self) -> int | None:
        """When, on our own clock, something may be found that this server knows of."""
        return self.due[0][0] if self.due else None

    def schedule(self, bucket: int, at_monotonic_ms: int) -> None:
        earliest = self.scheduled.get(bucket)
        if earliest is None or at_monotonic_ms < earliest:
            self.scheduled[bucket] = at_monotonic_ms
            heapq.heappush(self.due, (at_monotonic_ms, bucket))

    def take_due(self, now: Moment, most: int) -> list[int]:
        taken: list[int] = []
        while self.due and self.due[0][0] <= now.monotonic_ms and len(taken) < most:
            at, bucket = heapq.heappop(self.due)
            if self.scheduled.get(bucket) == at:
                del self.scheduled[bucket]
                taken.append(bucket)
        return taken

    def watch(self, number: int, revision: int, now: Moment) -> int:
        """How long this revision has been seen unchanged, on our own clock, in milliseconds."""
        seen = self.watched.get(number)
        if seen is not None and seen[0] == revision:
            return now.monotonic_ms - seen[1]
        self.watched[number] = (revision, now.monotonic_ms)
        if len(self.watched) > limits.WATCHED_ROWS:
            self.watched.popitem(last=False)
        return 0

    def remember_finished(self, bucket: int) -> None:
        self.finished[bucket] = None
        if len(self.finished) > limits.WATCHED_ROWS:
            self.finished.popitem(last=False)
        self.scheduled.pop(bucket, None)
        if len(self.due) > 2 * len(self.scheduled) + limits.DUE_SPARE:
            # Mostly of buckets that are finished long before their messages' time-outs would end.
            self.due = [(at, waiting) for waiting, at in self.scheduled.items()]
            heapq.heapify(self.due)
        self.full.pop(bucket, None)
        self.acked.pop(bucket, None)

    def remember_full(self, bucket: int) -> None:
        self.full[bucket] = None
        if len(self.full) > limits.FULL_BUCKETS:
            self.full.popitem(last=False)

    def count_acked(self, bucket: int, messages: int) -> None:
        self.acked[bucket] = self.acked.pop(bucket, 0) + messages
        if len(self.acked) > limits.FULL_BUCKETS:
            self.acked.popitem(last=False)

    def reopen(self, bucket: int) -> None:
        """Forgets what was read of a bucket, so that it is read again from the beginning."""
        self.open.pop(bucket, None)
        if any(held == bucket for held, _ in self.fresh):
            self.fresh = deque(item for item in self.fresh if item[0] != bucket)

    def others_took_new(self, bucket: int) -> None:
        """So may be the rest that was read ahead of the bucket: it is read again, first of all what was claimed there.
        And for a while this server begins elsewhere: two that read from the same end meet again and again."""
        self.reads_aside, self.met_in = limits.READS_ASIDE, bucket
        opened = self.open.get(bucket)
        if opened is not None and not opened.stale:
            opened.stale = True
            self.fresh = deque(item for item in self.fresh if item[0] != bucket)

    def others_took_again(self, bucket: int, now: Moment) -> None:
        """So may the other messages of the bucket that had become visible again: it is looked into once more."""
        self.again = deque(item for item in self.again if item[0] != bucket)
        self.schedule(bucket, now.monotonic_ms)

    def forget_below(self, marks: Marks) -> None:
        """Drops what the marks have passed."""
        for bucket in [bucket for bucket in self.open if bucket < marks.reader]:
            del self.open[bucket]
        if any(bucket < marks.final or item.number < marks.purged for bucket, item in self.fresh):
            self.fresh = deque(
                (bucket, item) for bucket, item in self.fresh if bucket >= marks.final and item.number >= marks.purged
            )
        if any(bucket < marks.floor or item.number < marks.purged for bucket, item in self.again):
            self.again = deque(
                (bucket, item) for bucket, item in self.again if bucket >= marks.floor and item.number >= marks.purged
            )


@dataclass(frozen=True, slots=True)
class Lane(AnyLane):
    view: LaneView
    sealed: bool
    place: Callable[[], tuple[int, int]]
    """This server's place among those that share the work, and how many they are."""
    rank: Rank = PLAIN

    def by_bucket(self, numbers: Iterable[int]) -> dict[int, set[int]]:
        """The ids of each bucket that has one of them."""
        found: dict[int, set[int]] = {}
        for number in numbers:
            found.setdefault(self.bucket_of(number), set()).add(number)
        return found

    def bodies(self, bucket: int) -> Partition:
        return places.bodies(self.incarnation, self.number, bucket)

    def states(self, bucket: int) -> Partition:
        return places.states(self.incarnation, self.number, bucket)


async def read_marks(lane: Lane) -> Marks:
    """The lane as it stands. A lane without its sequence row has been deleted."""
    sequence, pointers = await lane.store.read([Span(lane.sequence), Span(lane.pointers)])
    return marks_of(lane, sequence, pointers)


def marks_of(lane: Lane, sequence: Slice, pointers: Slice) -> Marks:
    row = sequence.rows[0].values if sequence.rows else {}
    next_id = row.get("next")
    if not isinstance(next_id, int) or row.get("deleted"):
        raise QueueGone(lane.queue)
    marks = pointer_marks(pointers)._replace(next_id=next_id)
    lane.view.next_id = max(next_id, lane.view.next_id or 0)
    lane.view.note_passed(marks, lane.settings.bucket_size)
    lane.view.forget_below(marks)
    return marks
