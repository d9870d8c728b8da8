"""A databag as a verb needs it, and what a server remembers of one. All of the latter is hints: a conditional write
that is refused, or a look that is not too old, corrects them (R4)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angelhair import limits
from angelhair.clock import Clock, Moment
from angelhair.engine import places
from angelhair.engine.databag.cut import Run, cut
from angelhair.engine.databag.ids import BLOCK_SLICES
from angelhair.engine.databag.passed import Passed
from angelhair.engine.databag.seen import NOTHING, Seen
from angelhair.engine.identities import Identities
from angelhair.engine.store import Partition, Store
from angelhair.model import QueueSettings

if TYPE_CHECKING:
    from angelhair.engine.databag.epochs import Epochs

LONG_AGO_MS = -(1 << 62)
NEVER = (LONG_AGO_MS, 0)
LANE = 0
"""A databag has one lane, whose sequence and marks are those of the whole."""


@dataclass(slots=True, eq=False)
class Lock:
    """A run that was served. It is locked until its time is over by the wall clock, or it was watched for as long
    (R5)."""

    first: int
    last: int
    serving: int
    served_at_ms: int
    duration_ms: int
    given: frozenset[int]
    last_given: int | None
    """The last of them: the next serving begins behind it, if any of them is still there then."""
    passed: Passed
    """What lay before them, and nobody has deleted."""
    left: bool
    """Others were left, or may have been, which wait until it is over."""
    since_ms: int
    """When it was first seen, on our own monotonic clock."""
    counted: frozenset[int] = frozenset()
    """Those of what was given that were counted then, as served twice within a time-out (D7)."""

    def holds(self, now: Moment, by_wall: bool) -> bool:
        if by_wall and now.wall_ms >= self.served_at_ms + self.duration_ms:
            return False
        return now.monotonic_ms - self.since_ms < self.duration_ms

    def is_long_ago(self, now: Moment, by_wall: bool) -> bool:
        """It was as many time-outs ago as servings pass others over at most."""
        passed_ms = now.monotonic_ms - self.since_ms
        if by_wall:
            passed_ms = max(passed_ms, now.wall_ms - self.served_at_ms)
        return passed_ms >= limits.BAG_PASSED_SERVINGS * self.duration_ms

    def lapses_ms(self, now: Moment, by_wall: bool) -> int:
        """When it is over, on our monotonic clock."""
        watched_ms = self.since_ms + self.duration_ms
        if not by_wall:
            return watched_ms
        return min(watched_ms, now.monotonic_ms + self.served_at_ms + self.duration_ms - now.wall_ms)


@dataclass(slots=True)
class Scan:
    """How far a sealed epoch was read: all below is deleted, expired or never was, as long as nothing is admitted."""

    admitted: int
    reached: int = 0


@dataclass(slots=True)
class BlockView:
    epochs: Epochs | None = None
    epochs_ms: int = LONG_AGO_MS
    """When that was asked for."""
    settled: int = 0
    """Epochs below this one are sealed, and whoever looks sees that."""
    version: int | None = None
    """Of the locks; None when they are not known."""
    locks: dict[int, Lock] = field(default_factory=dict)
    """By their first slices."""
    by_slice: list[Lock | None] = field(default_factory=lambda: [None] * BLOCK_SLICES)
    """The lock that counts, for each slice of the block."""
    left: set[Lock] = field(default_factory=set)
    """Those behind which messages were left, whoever has served them; and some that are over."""
    duplicates: int = 0
    written: Counter[int] = field(default_factory=Counter)
    """By epoch: messages and deletes that this server has written there."""
    empty: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By sealed epoch: what had been admitted, and a bit for each slice in which all is deleted. That stays so."""
    scans: dict[int, Scan] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    """By epoch that is finished: until when it was seen not to be. What was locked since then may have come too late
    for who finished it and counted (D7)."""
    uncounted: set[int] = field(default_factory=set)
    """Epochs that are finished, of which it is not known that somebody has counted after that."""
    tended_ms: int = LONG_AGO_MS
    finished_last: int = -1
    """The epoch that was looked at last, whether it can be finished."""
    crowded_ms: int = LONG_AGO_MS
    """When a look at all of its unlocked runs has last found that much lies between them, or more than one read
    brings."""
    page: int = 0
    """Rows that one of the last looks had to read, those that were deleted included."""

    def add_lock(self, lock: Lock) -> None:
        self.left.discard(self.locks.get(lock.first, lock))
        self.locks[lock.first] = lock
        if lock.left:
            self.left.add(lock)
        for slice_ in range(lock.first % BLOCK_SLICES, lock.last % BLOCK_SLICES + 1):
            before = self.by_slice[slice_]
            if before is None or before.serving <= lock.serving:
                self.by_slice[slice_] = lock

    def locks_of(self, run: Run) -> set[Lock | None]:
        """Those that count for the run's slices; None where there is none."""
        return set(self.by_slice[run.first % BLOCK_SLICES : run.last % BLOCK_SLICES + 1])

    def is_locked(self, run: Run, now: Moment, by_wall: bool) -> bool:
        return any(lock is not None and lock.holds(now, by_wall) for lock in self.locks_of(run))

    def left_behind(self, now: Moment, by_wall: bool) -> set[Lock]:
        """Locks that hold, and behind which messages were left. How the slices were cut then does not matter."""
        self.left = {lock for lock in self.left if lock.holds(now, by_wall)}
        return self.left

    def forget_gone(self, epochs: Epochs) -> None:
        there = set(epochs.read)
        for number in [number for number in self.ended if not epochs.is_there(number)]:
            del self.ended[number]
        self.uncounted &= self.ended.keys()
        for kept in (self.written, self.empty, self.scans):
            for number in [number for number in kept if number not in there]:
                del kept[number]

    def is_empty(self, epoch: int, admitted: int, bits: int) -> bool:
        known = self.empty.get(epoch)
        return known is not None and known[0] == admitted and known[1] & bits == bits

    def note_empty(self, epoch: int, admitted: int, bits: int) -> None:
        known = self.empty.get(epoch)
        self.empty[epoch] = (admitted, bits | known[1] if known is not None and known[0] == admitted else bits)


def slice_bits(first: int, last: int) -> int:
    """A bit for each of these slices, counted from the beginning of their block."""
    return (1 << last - first + 1) - 1 << first % BLOCK_SLICES


@dataclass(slots=True)
class BagView:
    blocks: list[BlockView] = field(default_factory=lambda: [BlockView() for _ in range(limits.BAG_BLOCKS)])
    settings: QueueSettings | None = None
    """Those in force, since the last sync."""
    synced_ms: int = LONG_AGO_MS
    sync_begun: int = 0
    sync_taken: int = 0
    """Syncs that were begun, and the one whose settings are in force."""
    partitions: int = 0
    runs: tuple[Run, ...] = ()
    order: OrderedDict[Run, None] = field(default_factory=OrderedDict)
    """The least recently served in front (D3)."""
    is_sorted: bool = True
    """Otherwise it was heard of servings by others, which the order does not know."""
    turns: list[tuple[int, int]] = field(default_factory=lambda: [NEVER] * limits.BAG_SLICES)
    """By slice, when it was last served, on our monotonic clock; and a number where that is the same."""
    turn: tuple[int, int] = NEVER
    """The last of ours: each is later than the one before."""
    serials: range = range(0)
    """Those that this server has left."""
    row_bytes: int = 0
    starved: int = 0
    looked: int = 0
    found_empty: int = 0
    """Since the last sync: receives that found nothing unlocked where messages wait; runs looked at, and empty ones."""
    hindered: bool = False
    """And whether one of them got less than wanted while something was locked: messages may have come to that."""
    deleted: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Deletes that were confirmed here."""
    due_ms: int | None = None
    """When the first lock is over behind which messages wait."""
    tended: int = 0
    unsettled: bool = False
    """A look could not remember what it found empty, as the seal of its epoch is not settled."""
    receives: int = 0
    seen: Seen = NOTHING
    """What the last receive that has looked at anything found."""

    def earliest_due_ms(self) -> int | None:
        return self.due_ms if any(block.left for block in self.blocks) else None

    def cut_into(self, partitions: int) -> None:
        """The same slices in other runs: what was served last is known by slice."""
        if partitions == self.partitions:
            return
        self.partitions, self.runs = partitions, cut(partitions)
        self._sort()

    def _sort(self) -> None:
        last = {run: max(self.turns[run.first : run.last + 1]) for run in self.runs}
        self.order = OrderedDict.fromkeys(sorted(self.runs, key=lambda run: (last[run], run)))
        self.is_sorted = True

    def in_order(self) -> Iterable[Run]:
        if not self.is_sorted:
            self._sort()
        return self.order

    def served(self, run: Run, now_ms: int) -> None:
        """The run has had its turn. It may be one of before the slices were cut anew."""
        self.turn = max((now_ms, 0), (self.turn[0], self.turn[1] + 1))
        self.turns[run.first : run.last + 1] = [self.turn] * (run.last - run.first + 1)
        if run in self.order:
            self.order.move_to_end(run)

    def heard(self, lock: Lock, at_ms: int) -> None:
        """Somebody else has served it: it has had its turn then."""
        turn = (at_ms, lock.serving)
        for slice_ in range(lock.first, lock.last + 1):
            self.turns[slice_] = max(self.turns[slice_], turn)
        self.is_sorted = False

    def remember_deleted(self, numbers: list[int]) -> None:
        for number in numbers:
            self.deleted[number] = None
            self.deleted.move_to_end(number)
        while len(self.deleted) > limits.BAG_DELETED:
            self.deleted.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Bag:
    """One incarnation of a databag, as a verb needs it."""

    store: Store
    account: str
    name: str
    incarnation: str
    secret: bytes = field(repr=False)
    settings: QueueSettings
    """As they are in force on this server, which may be those of before its last sync."""
    identities: Identities
    clock: Clock
    trusts_clock: Callable[[Moment], bool]
    view: BagView
    place: int
    """Of this server among the living."""
    servers: int

    def messages(self, block: int, epoch: int) -> Partition:
        return places.bag_messages(self.incarnation, block, epoch)

    def locks(self, block: int) -> Partition:
        return places.bag_locks(self.incarnation, block)

    @property
    def sequence(self) -> Partition:
        return places.sequence(self.incarnation, LANE)

    @property
    def pointers(self) -> Partition:
        return places.pointers(self.incarnation, LANE)

    async def time_ms(self) -> int:
        """Now: by our own wall clock, or the store's when ours is not known to be right (R5)."""
        now = self.clock.now()
        return now.wall_ms if self.trusts_clock(now) else await self.store.time_ms()

    def expired(self, enqueued_at: object, now: Moment) -> bool:
        """Past its retention, by a clock that is to be trusted."""
        retention_ms = self.settings.retention_ms
        if retention_ms is None or not isinstance(enqueued_at, int) or not self.trusts_clock(now):
            return False
        return enqueued_at + retention_ms <= now.wall_ms

    def is_given_up(self, held_at: object, now: Moment) -> bool:
        """Whether nobody comes back to a place that was held for a message with a key: the key's row is gone by then,
        whatever its window was, and nobody sleeps for so long."""
        if not isinstance(held_at, int) or not self.trusts_clock(now):
            return False
        return held_at + 1_000 * limits.LEDGER_SECONDS + 4 * limits.CLOCK_ERROR_MS <= now.wall_ms

    @property
    def kept_ms(self) -> int:
        """How long a finished epoch stays: its history, and as long as a key may name an id in it."""
        return max(self.settings.history_ms, self.settings.dedup_window_ms + 4 * limits.CLOCK_ERROR_MS)
