"""A look at neighbouring runs of a block: what of them may be given, epoch by epoch, the oldest first.

A look reads one range of each epoch's partition, of the oldest first, or of all at once where little is expected. It
stops when the first run that is not empty has more than are
wanted: what is left in a run that is locked waits for the lock's end, so a batch is taken from as few as fill it. What
is deleted is passed over; of a sealed epoch it is remembered in which slices nothing is left, and these are not read
again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.databag import ids
from angelhair.engine.databag.cut import Run
from angelhair.engine.databag.duplicates import last_given
from angelhair.engine.databag.epochs import Epochs
from angelhair.engine.databag.lane import Bag, Lock, slice_bits
from angelhair.engine.databag.passed import NOTHING_PASSED, Last, last_of
from angelhair.engine.store import Row, Slice, Span


@dataclass(slots=True)
class Look:
    """Runs of one block in their order, and what was found in them."""

    runs: list[Run]
    locks: list[set[Lock | None]]
    """What had locked each of them, before anything was read: if that is so still, nobody has served it since."""
    epochs: Epochs
    waiting: list[int]
    """Epochs that are to be read; the first is being read."""
    last: list[Last]
    rows: list[list[Row]]
    """By run, what may be given."""
    again: list[list[Row]]
    """By run, what lies before the end of what was given last, if any of that is still there: it comes after the rest.
    So what nobody deletes keeps nothing behind it from being served."""
    end: int
    """The last slice that is to be read. It comes down when more than enough lies before it."""
    unseen: set[int]
    """What was given of the runs the last time, and has not been read since."""
    deleted: dict[int, int] = field(default_factory=dict)
    """Ids that are deleted, and when."""
    reached: int | None = None
    """The id from which on the epoch is to be read; None: from its beginning."""
    through: int = -1
    """Up to this slice all was read, in all epochs so far."""
    pages: int = 0
    passed: int = 0
    """Of the epoch that is being read: reads, and rows that they brought."""
    clean: bool = True
    """Nothing was found so far in the epoch that is being read."""
    whole: bool = False
    """All of it is to be read, up to a page: there are others between its runs, and the first of them need not come
    first."""
    room: int = 0
    """What may lie between its runs before it is dearer to read that than to read them one by one, in bytes."""
    between: int = 0
    """What does, as far as it was read: most of it is behind locks, and nobody wants it."""
    width: int = 1
    """Epochs that are read at once, though the first may have enough."""
    settled: int = 0
    """Those below were settled before anything was read."""
    rounds: int = 0
    """Reads so far, of whatever epochs."""
    ahead: dict[int, Slice] = field(default_factory=dict)
    """By epoch, what was read and is not taken in before the older ones are."""

    @property
    def block(self) -> int:
        return self.runs[0].block

    def add(self, place: int, row: Row, number: int) -> None:
        last = self.last[place]
        is_before = (self.waiting[0], number) <= last.end
        if is_before and number in last.given:
            # Nobody has deleted it. What came before it is no newer, or will wait no longer than it.
            self.again[place] += [*self.rows[place], row]
            self.rows[place] = []
        elif is_before and (last.behind or self.again[place]):
            self.again[place].append(row)
        else:
            self.rows[place].append(row)

    def is_covered(self, place: int) -> bool:
        """Whether all of a run was read."""
        return not self.waiting and self.runs[place].last <= self.through

    @property
    def found(self) -> int:
        return sum(map(len, self.rows))

    @property
    def there(self) -> int:
        return self.found + sum(map(len, self.again))

    @property
    def seen(self) -> int:
        """Runs up to the last in which something was found, or all if there was not enough."""
        if self.is_covered(len(self.runs) - 1):
            return len(self.runs)
        return max((place + 1 for place, rows in enumerate(self.rows) if rows), default=len(self.runs))

    @property
    def is_crowded(self) -> bool:
        return self.between > self.room

    def unread(self) -> list[int]:
        """Epochs that are to be read next."""
        return [number for number in self.waiting[: self.width] if number not in self.ahead]

    def widen(self) -> None:
        """Where the oldest epoch has not enough the next one mostly does. After that it is likely that all have little,
        and twice as many are read each time."""
        self.width <<= min(self.rounds, 1)
        self.rounds += 1

    def is_enough(self, wanted: int) -> bool:
        """Whether the first run that is not empty has more than are wanted: one more, so that it is known that
        something is left. Were it to be guessed, a single message in an older epoch would look like many that wait."""
        return not self.whole and len(next((rows for rows in self.rows if rows), ())) > wanted


def begin(
    bag: Bag, runs: list[Run], locks: list[set[Lock | None]], epochs: Epochs, width: int = 1, whole: bool = False
) -> Look:
    """`width`: so many epochs at once, if there are."""
    bits = slice_bits(runs[0].first, runs[-1].last)
    waiting = [number for number in epochs.read if not _known_empty(bag, runs[0].block, epochs, number, bits)]
    unseen = {number for run in runs for number in last_given(bag, run, epochs)}
    last = [_last(bag, of, epochs) for of in locks]
    gaps = sum(run.last + 1 < following.first for run, following in pairwise(runs))
    return Look(
        runs, locks, epochs, waiting, last, [[] for _ in runs], [[] for _ in runs], runs[-1].last, unseen,
        through=runs[-1].last, whole=whole, width=width, settled=bag.view.blocks[runs[0].block].settled,
        room=gaps * limits.BAG_GAP_BYTES,
    )


def _last(bag: Bag, locks: set[Lock | None], epochs: Epochs) -> Last:
    # Several that were served at once may be one run by now: the last of them, so that a seed is always played alike.
    last = max(
        (each for each in locks if each is not None), key=lambda each: (each.serving, each.first), default=None
    )
    if last is None:
        return last_of(frozenset(), None, NOTHING_PASSED, epochs.open, long_ago=False)
    long_ago = last.is_long_ago(bag.clock.now(), bag.trusts_clock(bag.clock.now()))
    return last_of(last.given, last.last_given, last.passed, epochs.open, long_ago)


async def see_given(bag: Bag, looks: list[Look]) -> None:
    """Reads what was given the last time and was not come across: of a part of an epoch in which nothing is left, or
    behind more than enough."""
    spans: dict[tuple[int, int], set[int]] = {}
    for look in looks:
        for number in look.unseen:
            spans.setdefault((look.block, ids.epoch_of(number, look.epochs.open)), set()).add(number)
    if not spans:
        return
    found = await bag.store.read([
        Span(bag.messages(*place), min(numbers), max(numbers), columns=("deleted",))
        for place, numbers in spans.items()
    ])
    for (block, _), slice_ in zip(spans, found, strict=True):
        for look in looks:
            if look.block == block:
                look.deleted.update(
                    (int(row.key), deleted)
                    for row in slice_.rows
                    if isinstance(deleted := row.values.get("deleted"), int)
                )


async def look_into(bag: Bag, looks: list[Look], wanted: int, beside: Sequence[Span] = ()) -> list[Slice]:
    """Reads on in all of them, until each has what is wanted or nothing is left of it; and what else is asked
    beside them, if anything is read at all."""
    answers: list[Slice] = []
    while going := [look for look in looks if look.waiting and not look.is_enough(wanted)]:
        asked = [(look, epoch) for look in going for epoch in look.unread()]
        found = await bag.store.read([*(_span(bag, look, epoch, wanted) for look, epoch in asked), *beside])
        answers += found[len(asked) :]
        beside = ()
        now = bag.clock.now()
        for (look, epoch), slice_ in zip(asked, found, strict=False):
            look.ahead[epoch] = slice_
        for look in going:
            while look.waiting and not look.is_enough(wanted):
                slice_of_next = look.ahead.pop(look.waiting[0], None)
                if slice_of_next is None:
                    break
                _take_in(bag, look, slice_of_next, now, wanted)
            look.widen()
    return answers


def _span(bag: Bag, look: Look, epoch: int, wanted: int) -> Span:
    most = limits.BAG_LOOK_MOST_ROWS
    if not look.whole:
        # About as many as it took the last time, so that one read is enough however many are deleted.
        usual = bag.view.blocks[look.block].page * 5 // 4
        most = min(most, max(limits.BAG_LOOK_ROWS, 2 * wanted, usual) << min(look.pages, limits.BAG_EPOCH_BITS))
    most = max(most, 2 * wanted)
    if bag.view.row_bytes:
        most = min(most, max(wanted, limits.BAG_LOOK_BYTES // bag.view.row_bytes))
    is_begun = look.reached is not None and epoch == look.waiting[0]
    first = look.reached if is_begun else ids.first_of(look.runs[0].first)
    return Span(bag.messages(look.block, epoch), first, ids.last_of(look.end), most)


def _take_in(bag: Bag, look: Look, slice_: Slice, now: Moment, wanted: int) -> None:
    firsts = [run.first for run in look.runs]
    rows, more, last = slice_.rows, slice_.more, ids.last_of(look.end)
    if rows and int(rows[-1].key) > last:
        # It was read before the end came down.
        rows, more = [row for row in rows if int(row.key) <= last], False
    end = int(rows[-1].key) if more and rows else None
    needed = 0
    for row in rows:
        needed += 1
        number = int(row.key)
        look.unseen.discard(number)
        deleted, body = row.values.get("deleted"), row.values.get("body")
        if isinstance(deleted, int):
            look.deleted[number] = deleted
        elif number not in bag.view.deleted:
            if look.clean:
                _note_empty(bag, look, ids.slice_of(number) - 1)
                look.clean = False
            if not isinstance(body, bytes):
                # The place of a message with a key, which is to come.
                continue
            place = bisect_right(firsts, ids.slice_of(number)) - 1
            if ids.slice_of(number) > look.runs[place].last:
                look.between += max(len(body), limits.BAG_ROW_BYTES)
            elif not bag.expired(row.values.get("enqueued_at"), now):
                look.add(place, row, number)
                bag.view.row_bytes = (7 * bag.view.row_bytes + len(body)) // 8 + 1
                if look.is_enough(wanted):
                    # Nobody needs the rest.
                    end = number
                    break
    if end is not None and end < last:
        is_much = look.passed + needed >= limits.BAG_LOOK_MOST_ROWS
        if not look.is_crowded and (look.found <= wanted or (look.whole and not is_much)):
            look.reached, look.passed, look.pages = end + 1, look.passed + needed, look.pages + 1
            return
        # More than enough, if not in one run, or more that nobody wants: of the next epochs as far as this.
        look.end = ids.slice_of(end)
        look.through = min(look.through, look.end - 1)
        if look.whole:
            _note_crowded(bag, look, now)
    else:
        look.through = min(look.through, look.end)
        if look.clean:
            _note_empty(bag, look, look.end)
    if look.is_crowded:
        _note_crowded(bag, look, now)
    if not look.whole:
        block = bag.view.blocks[look.block]
        block.page = max(look.passed + needed, block.page - block.page // 8)
    look.waiting.pop(0)
    look.reached, look.clean, look.passed, look.pages = None, True, 0, 0


def _note_crowded(bag: Bag, look: Look, now: Moment) -> None:
    """The next looks are at its runs one by one, in the order of their turns: what was not reached comes first."""
    bag.view.blocks[look.block].crowded_ms = now.monotonic_ms


def _note_empty(bag: Bag, look: Look, last: int) -> None:
    """Nothing of the epoch is left from the look's first slice to this one. That stays so if it is sealed, and nothing
    is admitted; but somebody may put there as long as not everybody sees the seal."""
    epoch, first = look.epochs.sealed_as(look.waiting[0]), look.runs[0].first
    if epoch is None or last < first:
        return
    if epoch.number >= look.settled:
        bag.view.unsettled = True
    else:
        bag.view.blocks[look.block].note_empty(epoch.number, epoch.admitted, slice_bits(first, last))


def _known_empty(bag: Bag, block: int, epochs: Epochs, number: int, bits: int) -> bool:
    epoch = epochs.sealed_as(number)
    return epoch is not None and bag.view.blocks[block].is_empty(number, epoch.admitted, bits)
