"""Finish: the mark `repair` passes buckets in which everything is settled; what has outlived its retention is settled.

Never the log's last one, though it be full: the next put looks for the end of the log there. When a bucket was
finished is written down in it, for who drops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from angelhair import limits
from angelhair.engine.fifo.edit import edit
from angelhair.engine.fifo.epoch import enter, look
from angelhair.engine.fifo.judge import Present, present, remaining
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.read import read_ahead
from angelhair.engine.fifo.state import EXPIRED, Entry, State
from angelhair.engine.marks import Marks, raise_mark
from angelhair.engine.settling import change_one
from angelhair.engine.store import Change
from angelhair.errors import StoreError


@dataclass(slots=True)
class FinishMemory:
    looked: tuple[int, int] | None = None
    """Which bucket was last looked into and not finished, and when on our own clock."""


async def finish_low(lane: Lane, marks: Marks, memory: FinishMemory) -> bool:
    """Settles what has expired in the first unfinished bucket, and passes it if nothing is left. True for more."""
    bucket, index = marks.repair, lane.view.index
    if bucket >= lane.view.last_bucket:
        return False
    end = lane.first_of(bucket + 1)
    now = lane.clock.now()
    if memory.looked is not None and memory.looked[0] == bucket:
        if now.monotonic_ms - memory.looked[1] < limits.LOW_LOOK_MS and not _seems_settled(lane, marks, bucket):
            return False
    while index.end < end and await read_ahead(lane):
        continue
    await enter(lane)
    if not _seems_settled(lane, marks, bucket):
        await look(lane)
    at = await present(lane, marks)
    unsettled = _unsettled(lane, at.purged, lane.first_of(bucket), min(end, index.end))
    over = {group: numbers for group in unsettled if (numbers := _over(lane, group, unsettled[group], at))}
    if over:
        await edit(lane, {group: partial(_expire, lane, at, group, numbers) for group, numbers in over.items()})
        unsettled = _unsettled(lane, at.purged, lane.first_of(bucket), min(end, index.end))
    if unsettled or index.end < end:
        memory.looked = (bucket, now.monotonic_ms)
        return False
    # What is remembered may be old, but what was settled once stays so: this is no guess.
    finished = Change(lane.log(bucket), expect_flags={"finished_at": None}, set_flags={"finished_at": at.now_ms})
    if isinstance(outcome := await change_one(lane.store, finished), StoreError):
        raise outcome
    if not await raise_mark(lane, "repair", bucket, bucket + 1):
        return False
    index.forget_below(end)
    return True


def _seems_settled(lane: Lane, marks: Marks, bucket: int) -> bool:
    end = lane.first_of(bucket + 1)
    return lane.view.index.end >= end and not _unsettled(lane, marks.purged, lane.first_of(bucket), end)


def _unsettled(lane: Lane, purged: int, first: int, end: int) -> dict[str, list[int]]:
    """By group, the messages from `first` to `end` that are not settled, as far as is known."""
    view = lane.view
    found: dict[str, list[int]] = {}
    for number in range(max(first, view.index.first, purged), end):
        group = view.index.group_of(number)
        if group is not None:
            state = view.states.get(group)
            if state is None or not state.settled(number):
                found.setdefault(group, []).append(number)
    return found


def _over(lane: Lane, group: str, numbers: Sequence[int], at: Present) -> list[int]:
    """Those that have outlived the retention, and that nobody has in hand."""
    if at.over_before is None:
        return []
    state = lane.view.states.get(group, State())
    over = []
    for number in numbers:
        entry = state.touched.get(number)
        held = entry is not None and (entry.settled is not None or remaining(lane, group, entry, at) > 0)
        if held or lane.view.index.date_of(number) + lane.settings.delay_ms > at.over_before:
            # In order: what is behind it is younger, or has to wait for it.
            break
        over.append(number)
    return over


def _expire(lane: Lane, at: Present, group: str, numbers: Sequence[int], state: State) -> State | None:
    entries = {}
    at = at.later(lane.clock.now())
    for number in numbers:
        entry = state.touched.get(number)
        if state.settled(number):
            continue
        if entry is not None and (entry.settled is not None or remaining(lane, group, entry, at) > 0):
            break
        entries[number] = (entry or Entry(number, 0, 0, 0, 0))._replace(settled=EXPIRED)
    return state.changed(entries) if entries else None
