"""What the holder of a shard has in hand: rows beyond the checkpoint, each waiting, given or processed."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.store import Values


@dataclass(slots=True, eq=False)
class Entry:
    key: str
    values: Values
    delivery: int
    """Of its last delivery; those before it was set aside count."""
    given: bool = False
    hidden_until_ms: int = 0
    """On our own clock."""
    first_given_ms: int = 0
    """On our own clock."""
    first_given_at_ms: int | None = None
    changed: bool = False
    """Its consumer has set its time-out anew since it was given: it gave it back, or asked for more time."""
    settled: bool = False
    acked: int | None = None
    """The delivery that was acked."""
    on_its_way: bool = False
    """Being written again, at a later time."""


@dataclass(slots=True, eq=False)
class Held:
    """A shard whose lock this server took, and how long it may believe that it has it."""

    lane: int
    holder: str
    consumer: str
    fence: int
    beat: int
    mark_ms: int
    """As a confirmed change has it: whoever reads the shard's row from now on sees it."""
    seen_mark_ms: int
    """As the row shows it; it never falls below."""
    last: str
    duration_ms: int
    confirmed_ms: int
    """On our own clock, before the last change that was confirmed was sent."""
    cursor: str
    """What lies up to here has been read since the mark was above it."""
    reached: str
    """What lies up to here is processed, though the checkpoint may not say so yet."""
    window: OrderedDict[str, Entry] = field(default_factory=OrderedDict)
    ready: deque[Entry] = field(default_factory=deque)
    hidden: list[tuple[int, int, Entry]] = field(default_factory=list)
    hidings: int = 0
    size: int = 0
    """Bytes of bodies that are in hand."""
    acked: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """Processed behind `reached`, and which delivery was acked."""
    passed: int = 0
    """Messages between `last` and `reached`."""
    raised_ms: int | None = None
    changing: bool = False
    left_ms: int | None = None
    """Since when, on our own clock, it is to be given back; None: it is not."""
    lost: bool = False
    look_ms: int | None = None
    """When there may be more to read, of which it is known already."""
    exhausted: list[Entry] = field(default_factory=list)
    """Given too often; they wait to be moved to the dead letters."""

    def believed(self, now: Moment) -> bool:
        """Whether its holder may act on it. Others wait for all of the lock's time, and began to later than we."""
        return not self.lost and now.monotonic_ms < self.believed_until_ms

    @property
    def believed_until_ms(self) -> int:
        return self.confirmed_ms + self.duration_ms - self.duration_ms // limits.TIMELINE_TOUCHES

    def fresh(self, now: Moment) -> bool:
        """Whether it was touched so lately that the next time will do."""
        return now.monotonic_ms - self.confirmed_ms < self.duration_ms // (2 * limits.TIMELINE_TOUCHES)

    @property
    def leaving(self) -> bool:
        return self.left_ms is not None

    def leave(self, now: Moment) -> None:
        """Nothing more is given from it; what was, is waited for, though not for ever."""
        if self.left_ms is None:
            self.left_ms = now.monotonic_ms

    @property
    def room(self) -> int:
        """For how many messages more there is room in the window; large ones fill it sooner."""
        if self.window and self.size >= limits.RECEIVE_BYTES:
            return 0
        return max(0, limits.TIMELINE_WINDOW - len(self.window) - self.passed)

    @property
    def in_flight(self) -> bool:
        return any(entry.given and not entry.settled for entry in self.window.values())

    def add(self, key: str, values: Values) -> Entry:
        entry = Entry(key, values, _deliveries(values))
        self.window[key] = entry
        self.ready.append(entry)
        self.size += _size(values)
        return entry

    @property
    def setting_aside(self) -> bool:
        """Whether something of it is being written again just now."""
        return any(entry.on_its_way for entry in self.window.values())

    def failed(self, now: Moment) -> list[Entry]:
        """What was given more than once and not acked, whose time-out has passed, or of which its consumer has said
        when it is to come again. Not what was just handed out for the first time: nobody may have looked at it."""
        return [
            entry for entry in self.window.values()
            if entry.given and not entry.settled
            and (entry.changed or entry.delivery > _deliveries(entry.values) + 1
                 or entry.hidden_until_ms <= now.monotonic_ms)
        ]

    def hide(self, entry: Entry, until_ms: int) -> None:
        entry.hidden_until_ms = until_ms
        self.hidings += 1
        heappush(self.hidden, (until_ms, self.hidings, entry))

    def next_visible(self, now: Moment) -> Entry | None:
        """The next one to be given, taken out: one whose time-out has passed before one that is new (A9)."""
        while self.hidden and self.hidden[0][0] <= now.monotonic_ms:
            until_ms, _, entry = heappop(self.hidden)
            if not entry.settled and entry.hidden_until_ms == until_ms:
                return entry
        while self.ready:
            entry = self.ready.popleft()
            if not entry.settled:
                return entry
        return None

    def settle(self, entry: Entry, delivery: int | None) -> None:
        """It is processed, or lies durably elsewhere: the checkpoint may pass it. What it said is not needed."""
        self.size -= _size(entry.values)
        entry.settled, entry.acked, entry.values = True, delivery, {}
        self.advance()

    def advance(self) -> None:
        while self.window:
            key, entry = next(iter(self.window.items()))
            if not entry.settled:
                return
            del self.window[key]
            self.passed += 1
            self.reached = key
            if entry.acked is not None:
                self.acked[key] = entry.acked
                if len(self.acked) > limits.TIMELINE_ACKED:
                    self.acked.popitem(last=False)
        self.reached = max(self.reached, self.cursor)

    def due_ms(self) -> int | None:
        """When, on our own clock, there may be something to give."""
        if self.leaving or self.lost:
            return None
        times = [] if self.look_ms is None else [self.look_ms]
        times += [0] if self.ready else []
        times += [self.hidden[0][0]] if self.hidden else []
        return min(times) if times else None


def _deliveries(values: Values) -> int:
    deliveries = values.get("deliveries")
    return deliveries if isinstance(deliveries, int) else 0


def _size(values: Values) -> int:
    body = values.get("body")
    return len(body) if isinstance(body, bytes) else 0
