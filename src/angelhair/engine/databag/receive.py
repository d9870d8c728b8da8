"""Receive: the least recently served partitions first, each once before any twice (D3).

A server serves its own share of the partitions, and if nothing is there, those of others: so nothing is stranded while
servers disagree on who lives. It reads first and locks what it gives of: an empty partition costs no conditional write,
and is not locked. That nobody served in between is what the lock's condition says. A receive that does not get what it
wants looks on at as many as are likely to have it, by what it has found so far; and the next one begins with as many as
it took. So where there is next to nothing all of it is one look: what makes a receive slow are looks one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import lock
from angelhair.engine.databag.choose import FEW, by_block, choose, is_first, roomy
from angelhair.engine.databag.cut import Run
from angelhair.engine.databag.duplicates import last_given, served_deleted
from angelhair.engine.databag.lane import LANE, Bag
from angelhair.engine.databag.lock import Wanted
from angelhair.engine.databag.passed import Passed
from angelhair.engine.databag.read import Look, begin, look_into, see_given
from angelhair.engine.databag.seen import NOTHING, Seen
from angelhair.engine.marks import QueueGone
from angelhair.engine.store import Row, Slice, Span
from angelhair.engine.waiting import Waiting
from angelhair.errors import StoreError
from angelhair.model import Delivery, MessageId

LOCKED_FROM = 2
"""So many looks that do not bring what is wanted are followed by another before anything is locked: so that one change
locks what all of them have found. More would be too long after the first."""


async def receive(bag: Bag, group: Sequence[Waiting]) -> None:
    """Raises `QueueGone`."""
    by_visibility: dict[int, list[Waiting]] = {}
    for waiting in group:
        visibility_ms = waiting.ask.visibility_ms
        if visibility_ms is None:
            visibility_ms = bag.settings.visibility_timeout_ms
        by_visibility.setdefault(visibility_ms, []).append(waiting)
    for visibility_ms, some in by_visibility.items():
        await _serve(bag, some, visibility_ms)


async def _serve(bag: Bag, group: Sequence[Waiting], visibility_ms: int) -> None:
    await _know_locks(bag)
    await _settle_seals(bag)
    bag.view.receives += 1
    search = _Search(bag, bag.view.receives % limits.BAG_OTHERS_TURN == 0)
    for attempt in range(limits.BAG_ROUNDS):
        wanted = sum(waiting.missing for waiting in group)
        if wanted <= 0:
            return
        if await search.look_on(attempt, wanted) and attempt < LOCKED_FROM and search.held < wanted:
            continue
        if not search.looks:
            break
        await _give(bag, search, group, visibility_ms)
        search.looks = []
    if not search.touched and not any(waiting.deliveries for waiting in group):
        await _touch(bag)
    _note_starving(bag, group)


@dataclass(slots=True)
class _Search:
    """What one receive has looked at."""

    bag: Bag
    others_first: bool
    looked: set[Run] = field(default_factory=set)
    """Runs that were empty, or served."""
    looks: list[Look] = field(default_factory=list)
    """Those of which nothing is given yet."""
    partitions: int = 0
    """Into how many the slices were cut when it looked."""
    seen: Seen = NOTHING
    touched: bool = False

    @property
    def held(self) -> int:
        """Messages that were found, of which nothing is given yet."""
        return sum(look.there for look in self.looks)

    async def look_on(self, attempt: int, wanted: int) -> bool:
        """Looks at the next runs. False if there are none; or if the slices were cut anew since the last look, for then
        the next ones may be, in part, those of which nothing is given yet."""
        bag, view = self.bag, self.bag.view
        if self.looks and self.partitions != view.partitions:
            return False
        self.partitions = view.partitions
        seen = self.seen if attempt else view.seen
        likely = seen.likely(max(1, wanted - self.held))
        is_wide, is_thin = attempt > 0 or likely > FEW, seen.is_thin(wanted, len(view.runs))
        looked = self.looked.union(*(look.runs for look in self.looks))
        chosen = choose(bag, looked, self.others_first, likely if is_wide else 1, 1 << attempt)
        if not chosen:
            return False
        whole = roomy(bag) if is_thin and len(chosen) > FEW else set()
        chosen = by_block(chosen, whole)
        # Before anything is read: who has served since then is seen by this.
        locks = [[view.blocks[run.block].locks_of(run) for run in runs] for runs in chosen]
        blocks = sorted({runs[0].block for runs in chosen})
        epochs = dict(zip(blocks, await epochs_of.known(bag, blocks), strict=True))
        # All epochs of few, or a few of many: who expects little may be wrong, and read of each of a long backlog.
        width = max(1, limits.BAG_LOOK_EPOCHS // len(chosen)) if is_wide else 1
        looks = [
            begin(bag, runs, of, epochs[runs[0].block], width, runs[0].block in whole)
            for runs, of in zip(chosen, locks, strict=True)
        ]
        # If nothing is found, nothing that we change will tell that the queue was deleted and made again (R6).
        beside = [Span(bag.sequence)] if is_wide and not self.touched else []
        for sequence in await look_into(bag, looks, wanted, beside):
            _expect_there(sequence)
            self.touched = True
        self.looks += looks
        self.seen = view.seen = Seen(
            self.seen.runs + sum(look.seen for look in looks), self.seen.messages + sum(look.there for look in looks)
        )
        return True


async def _know_locks(bag: Bag) -> None:
    unknown = [block for block, view in enumerate(bag.view.blocks) if view.version is None]
    if unknown:
        await lock.load(bag, unknown)


async def _settle_seals(bag: Bag) -> None:
    """So that what is empty is not read again and again: once for all epochs that others have sealed since. If it
    fails, the next receive does it."""
    if bag.view.unsettled:
        with suppress(StoreError):
            await epochs_of.settle(bag)
            bag.view.unsettled = False


async def _touch(bag: Bag) -> None:
    (sequence,) = await bag.store.read([Span(bag.sequence)])
    _expect_there(sequence)


def _expect_there(sequence: Slice) -> None:
    if not sequence.rows or sequence.rows[0].values.get("deleted") is not None:
        raise QueueGone("the databag has been deleted")


async def _give(bag: Bag, search: _Search, group: Sequence[Waiting], visibility_ms: int) -> None:
    """Locks what is to be given, and gives it. Runs that were empty have had their turn."""
    view = bag.view
    rows: dict[int, Row] = {}
    chosen: list[_Chosen] = []
    empty: list[Run] = []
    missing = sum(waiting.missing for waiting in group)
    there = 0
    for look, number in _in_turn(search):
        run, found, again = look.runs[number], _kept(bag, look.rows[number]), _kept(bag, look.again[number])
        beyond = len(found)
        if look.is_covered(number):
            found = found + again
        there += bool(found)
        some = found[: min(missing, limits.BAG_GIVEN)]
        missing -= len(some)
        if some:
            numbers = [int(row.key) for row in some]
            rows.update(zip(numbers, some, strict=True))
            # If all of them come from behind what is still there, that waits for its turn.
            passed = look.last[number].then(numbers, beyond, bool(again))
            left = len(found) > len(some) or not look.is_covered(number)
            chosen.append(_Chosen(look, number, numbers, passed, left))
        elif not found and look.is_covered(number):
            empty.append(run)
    wanted = await _wanted(bag, search.looks, chosen)
    taken = await lock.take(bag, wanted, visibility_ms) if wanted else []
    now = bag.clock.now()
    # Empty neighbours are to come together the next time.
    for run in [*sorted(empty), *(each.run for each in taken)]:
        view.served(run, now.monotonic_ms)
        search.looked.add(run)
    view.looked += len(empty) + there
    view.found_empty += len(empty)
    for each in taken:
        for number in each.ids:
            if number in view.deleted:
                continue
            receiver = next(waiting for waiting in group if waiting.missing > 0)
            receiver.deliveries.append(_delivery(number, rows[number], now, visibility_ms))


def _kept(bag: Bag, rows: list[Row]) -> list[Row]:
    """Without those whose delete was confirmed here after they were read: other looks came in between."""
    return [row for row in rows if int(row.key) not in bag.view.deleted]


def _in_turn(search: _Search) -> list[tuple[Look, int]]:
    """The runs that were looked at, the least recently served in front: of ours, and then of others."""
    bag, turns = search.bag, search.bag.view.turns
    found = [(look, number) for look in search.looks for number in range(len(look.runs))]

    def turn(each: tuple[Look, int]) -> tuple[bool, tuple[int, int]]:
        run = each[0].runs[each[1]]
        return not is_first(bag, search.others_first, run), turns[run.first]

    return sorted(found, key=turn)


class _Chosen(NamedTuple):
    look: Look
    place: int
    """Of the run, in the look."""
    numbers: list[int]
    passed: Passed
    left: bool


async def _wanted(bag: Bag, looks: Sequence[Look], chosen: Sequence[_Chosen]) -> dict[int, list[Wanted]]:
    """By block what is to be locked, with what the rows that this takes the place of show of duplicates."""
    going = {
        number for each in chosen for number in last_given(bag, each.look.runs[each.place], each.look.epochs)
    }
    looks = [look for look in looks if any(look is each.look for each in chosen)]
    for look in looks:
        look.unseen &= going
    await see_given(bag, looks)
    wanted: dict[int, list[Wanted]] = {}
    for look, place, numbers, passed, left in chosen:
        run = look.runs[place]
        shown = served_deleted(bag.view.blocks[look.block].locks.get(run.first), look.deleted)
        wanted.setdefault(look.block, []).append(Wanted(run, numbers, look.locks[place], passed, left, len(shown)))
    return wanted


def _delivery(number: int, row: Row, now: Moment, visibility_ms: int) -> Delivery:
    identity = MessageId(LANE, number)
    body, attributes, origin = row.values["body"], row.values.get("attributes"), row.values.get("origin")
    enqueued_at = row.values.get("enqueued_at")
    assert isinstance(body, bytes)
    return Delivery(
        identity, str(identity), body, str(attributes) if attributes else None, 1,
        enqueued_at if isinstance(enqueued_at, int) else 0, now.wall_ms, now.wall_ms + visibility_ms,
        str(origin) if origin else None,
    )


def _note_starving(bag: Bag, group: Sequence[Waiting]) -> None:
    """Somebody got less than wanted while messages wait behind locks: a hint to cut finer."""
    view, now = bag.view, bag.clock.now()
    if not any(waiting.missing > 0 for waiting in group):
        view.due_ms = None
        return
    by_wall = bag.trusts_clock(now)
    times = [each.lapses_ms(now, by_wall) for block in view.blocks for each in block.left_behind(now, by_wall)]
    view.due_ms = min(times, default=None)
    view.starved += bool(times)
    view.hindered = view.hindered or any(
        each.holds(now, by_wall) for block in view.blocks for each in block.locks.values()
    )
