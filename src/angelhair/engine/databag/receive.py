"""Receive: the least recently served partitions first, each once before any twice (D3).

A server serves its own share of the partitions, and if nothing is there, those of others: so nothing is stranded while
servers disagree on who lives. It reads first and locks what it gives of: an empty partition costs no conditional write,
and is not locked. That nobody served in between is what the lock's condition says. A receive that does not get what it
wants looks twice as far each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import lock, sync
from angelhair.engine.databag.cut import Run, share
from angelhair.engine.databag.duplicates import last_given, served_deleted
from angelhair.engine.databag.lane import LANE, Bag
from angelhair.engine.databag.lock import Wanted
from angelhair.engine.databag.read import Look, begin, look_into, see_given
from angelhair.engine.marks import QueueGone
from angelhair.engine.store import Row, Span
from angelhair.engine.waiting import Waiting
from angelhair.model import Delivery, MessageId

MERGED_FROM = 3
"""So many attempts look at runs as they come; where that was not enough, one look is at all of a block that are
chosen."""


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
    looked: set[Run] = set()
    touched = False
    bag.view.receives += 1
    others_first = bag.view.receives % limits.BAG_OTHERS_TURN == 0
    for attempt in range(limits.BAG_ROUNDS):
        wanted = sum(waiting.missing for waiting in group)
        if wanted <= 0:
            return
        chosen = _choose(bag, looked, 1 << attempt, others_first)
        if not chosen:
            break
        if attempt >= MERGED_FROM:
            chosen = _merged(chosen)
        # Before anything is read: who has served since then is seen by this.
        locks = [[bag.view.blocks[run.block].locks_of(run) for run in runs] for runs in chosen]
        if attempt and not touched:
            # Nothing that we change will tell if the queue was deleted and made again (R6).
            await _touch(bag)
            touched = True
        blocks = sorted({runs[0].block for runs in chosen})
        epochs = dict(zip(blocks, await epochs_of.known(bag, blocks), strict=True))
        looks = [begin(bag, runs, of, epochs[runs[0].block]) for runs, of in zip(chosen, locks, strict=True)]
        await look_into(bag, looks, wanted)
        await _give(bag, looks, group, visibility_ms, looked)
    if not touched and not any(waiting.deliveries for waiting in group):
        await _touch(bag)
    _note_starving(bag, group)


async def _know_locks(bag: Bag) -> None:
    unknown = [block for block, view in enumerate(bag.view.blocks) if view.version is None]
    if unknown:
        await lock.load(bag, unknown)
    sync.remember_turns(bag)


async def _touch(bag: Bag) -> None:
    (sequence,) = await bag.store.read([Span(bag.sequence)])
    if not sequence.rows or sequence.rows[0].values.get("deleted") is not None:
        raise QueueGone("the databag has been deleted")


def _choose(bag: Bag, looked: set[Run], most: int, others_first: bool) -> list[list[Run]]:
    """Unlocked runs in the order of their turns, neighbours that follow each other in it together: ours, and when we
    have looked at all of them, those of others; now and then those of others first, as it may be that nobody asks
    them."""
    runs = bag.view.runs
    places = share(len(runs), bag.place, bag.servers)
    own = range(runs[places[0]].first, runs[places[-1]].last + 1) if places else range(0)
    order = bag.view.order
    return _unlocked(
        bag, (run for run in order if (run.first in own) != others_first and run not in looked), most
    ) or _unlocked(bag, (run for run in order if (run.first in own) == others_first and run not in looked), most)


def _unlocked(bag: Bag, runs: Iterable[Run], most: int) -> list[list[Run]]:
    view, now = bag.view, bag.clock.now()
    by_wall = bag.trusts_clock(now)
    groups: list[list[Run]] = []
    for run in runs:
        block = view.blocks[run.block]
        if block.version is None or block.is_locked(run, now, by_wall):
            continue
        last = groups[-1] if groups else []
        if last and last[-1].last + 1 == run.first and last[-1].block == run.block:
            if len(last) < limits.BAG_GROUP_PARTITIONS:
                last.append(run)
                continue
        if len(groups) == most:
            break
        groups.append([run])
    return groups


def _merged(chosen: Sequence[list[Run]]) -> list[list[Run]]:
    by_block: dict[int, list[Run]] = {}
    for runs in chosen:
        by_block.setdefault(runs[0].block, []).extend(runs)
    return [sorted(runs) for runs in by_block.values()]


async def _give(
    bag: Bag, looks: Sequence[Look], group: Sequence[Waiting], visibility_ms: int, looked: set[Run]
) -> None:
    """Locks what is to be given, and gives it. Runs that were empty have had their turn."""
    view = bag.view
    rows: dict[int, Row] = {}
    chosen: list[_Chosen] = []
    empty: list[Run] = []
    missing = sum(waiting.missing for waiting in group)
    for look, number in _in_turn(bag, looks):
        run, found = look.runs[number], look.rows[number]
        behind = len(found) if look.again[number] else 0
        if look.is_covered(number):
            found = found + look.again[number]
        some = found[:missing]
        missing -= len(some)
        if some:
            numbers = [int(row.key) for row in some]
            rows.update(zip(numbers, some, strict=True))
            # If all of them come from behind what is still there, that waits for its turn.
            left = len(found) > len(some) or not look.is_covered(number)
            chosen.append(_Chosen(look, number, numbers, len(some) <= behind, left))
        elif not found and look.is_covered(number):
            empty.append(run)
    wanted = await _wanted(bag, looks, chosen)
    taken = await lock.take(bag, wanted, visibility_ms) if wanted else []
    # Empty neighbours are to come together the next time.
    for run in [*sorted(empty), *(each.run for each in taken)]:
        view.served(run)
        looked.add(run)
    view.looked += len(empty) + len(taken)
    view.found_empty += len(empty)
    now = bag.clock.now()
    for each in taken:
        for number in each.ids:
            receiver = next(waiting for waiting in group if waiting.missing > 0)
            receiver.deliveries.append(_delivery(number, rows[number], now, visibility_ms))


def _in_turn(bag: Bag, looks: Sequence[Look]) -> list[tuple[Look, int]]:
    """The runs that were looked at, the least recently served in front."""
    found = [(look, number) for look in looks for number in range(len(look.runs))]
    return sorted(found, key=lambda each: bag.view.turns[each[0].runs[each[1]].first])


class _Chosen(NamedTuple):
    look: Look
    place: int
    """Of the run, in the look."""
    numbers: list[int]
    behind: bool
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
    for look, place, numbers, behind, left in chosen:
        run = look.runs[place]
        shown = served_deleted(bag.view.blocks[look.block].locks.get(run.first), look.deleted)
        wanted.setdefault(look.block, []).append(Wanted(run, numbers, look.locks[place], behind, left, len(shown)))
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
