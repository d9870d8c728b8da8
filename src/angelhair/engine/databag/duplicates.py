"""Duplicates that the store can show (D7): what was served though it had been deleted before, and what was served twice
within one time-out, because a clock was wrong.

A lock's row says what was given, and when; a message's row when it was deleted. They are compared when the lock's row
is about to be overwritten by the next serving, and before an epoch is finished, and again before it is dropped, for all
rows that name something of it: so once each. What was counted before its epoch's end goes from the lock's row, and no
later serving counts it again. What was counted when it was given, as served twice, is named in the row: it is not
counted as served after its delete.

A message that is deleted a second time, by whoever got it the second time, shows the later time: the earlier one is
gone, and with it what could be compared. Who dies after it has served leaves no trace of what came of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from angelhair.engine.databag import ids, lock
from angelhair.engine.databag.cut import Run
from angelhair.engine.databag.epochs import Epochs, Over
from angelhair.engine.databag.lane import Bag, Lock
from angelhair.engine.settling import change_one, expect_decided
from angelhair.engine.store import Applied, Change, RowChange, Span


def last_given(bag: Bag, run: Run, epochs: Epochs) -> list[int]:
    """What the lock's row names that goes when the run is served, but for epochs that were finished later than that:
    whoever did it has looked. Of those that this server knows as nothing but finished, as it began after that, it
    cannot tell, and looks."""
    view, there = bag.view.blocks[run.block], set(epochs.read)
    before = view.locks.get(run.first)
    if before is None:
        return []
    found: list[int] = []
    for number in before.given - before.counted:
        epoch = ids.epoch_of(number, epochs.open)
        ended_ms = view.ended.get(epoch)
        if epoch in there or (epochs.is_there(epoch) if ended_ms is None else before.since_ms >= ended_ms):
            found.append(number)
    return found


def served_deleted(before: Lock | None, deleted: Mapping[int, int]) -> set[int]:
    """Messages of a serving that were served though they had been deleted before."""
    if before is None:
        return set()
    uncounted = before.given - before.counted
    return {number for number in uncounted if deleted.get(number, before.served_at_ms) < before.served_at_ms}


async def count_before_drop(bag: Bag, block: int, epochs: Epochs, over: Over) -> bool:
    """Counts what the locks' rows still show of epochs that are about to go. Mostly that is nothing: it is what was
    served from one as it was finished, where all servers were begun anew before they looked again. False as
    `count_of_epoch`."""
    await lock.load(bag, [block])
    given = {ids.epoch_of(one, epochs.open) for each in bag.view.blocks[block].locks.values() for one in each.given}
    for number in sorted(given.intersection(range(over.first, over.last + 1))):
        if not await count_of_epoch(bag, block, epochs, number):
            return False
    return True


async def count_of_epoch(bag: Bag, block: int, epochs: Epochs, number: int) -> bool:
    """Counts what the locks' rows show of an epoch that is to be finished, or was. False when somebody changed them
    first."""
    await lock.load(bag, [block])
    view = bag.view.blocks[block]
    given = {
        each: [one for one in each.given if ids.epoch_of(one, epochs.open) == number] for each in view.locks.values()
    }
    numbers = [one for some in given.values() for one in some]
    if not numbers:
        return True
    span = Span(bag.messages(block, number), min(numbers), max(numbers), columns=("deleted",))
    (found,) = await bag.store.read([span])
    deleted = {int(row.key): at for row in found.rows if isinstance(at := row.values.get("deleted"), int)}
    shown = {each: some for each in given if (some := served_deleted(each, deleted))}
    if not shown or view.version is None:
        return not shown
    rest = [replace(each, given=each.given - some) for each, some in shown.items()]
    total = view.duplicates + sum(map(len, shown.values()))
    change = Change(
        bag.locks(block), [RowChange(each.first, {}, {"given": lock.packed(sorted(each.given))}) for each in rest],
        {"version": view.version, "deleted": None}, {"version": view.version + 1, "duplicates": total},
    )
    if not isinstance(expect_decided(await change_one(bag.store, change)), Applied):
        # Or it was us, and the answer was lost: what is left of the rows tells the next time.
        view.version = None
        return False
    view.version, view.duplicates = view.version + 1, total
    for each in rest:
        view.add_lock(each)
    return True
