"""Judge: what of a group may be delivered now.

In the order of the log, messages up to the first that is hidden: one in flight holds back all behind it, and after one
was extended only those before it may come again. A message is hidden until its time has come by the clock, or until its
delivery was watched unchanged for as long as it was meant to be hidden, on the watcher's own clock (R5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.fifo.lane import Lane
from angelhair.engine.fifo.state import MOVING, Entry, State
from angelhair.engine.marks import Marks


class Present(NamedTuple):
    """The moment at which a lane is judged, with what it depends on beside the groups."""

    now: Moment
    now_ms: int
    """By a clock that is near the store's."""
    purged: int
    over_before: int | None
    """What could be received before this has outlived the queue's retention; None when nobody may say so."""
    limit: int | None
    """Deliveries after which a message goes to the dead-letter queue; None when there is nowhere to go."""

    def later(self, now: Moment) -> Present:
        """The same, as late as it is by our own clock: what is seen now must not be dated before it was seen."""
        passed_ms = now.monotonic_ms - self.now.monotonic_ms
        over_before = None if self.over_before is None else self.over_before + passed_ms
        return self._replace(now=now, now_ms=self.now_ms + passed_ms, over_before=over_before)


async def present(lane: Lane, marks: Marks) -> Present:
    now_ms = await lane.time_ms()
    # What was seen is dated after it was seen: a watch that began too early would end too early.
    now = lane.clock.now()
    settings, missed_ms = lane.settings, lane.view.dead_letters_missed_ms
    missing = missed_ms is not None and now.monotonic_ms - missed_ms < limits.CATALOG_AGE_MS
    over = now_ms - settings.retention_ms if settings.retention_ms is not None and lane.trusts_clock(now) else None
    limit = settings.max_deliveries if settings.dead_letter_queue and not missing else None
    return Present(now, now_ms, marks.purged, over, limit)


@dataclass(slots=True)
class Judged:
    deliverable: list[int] = field(default_factory=list)
    settled_below: int = 0
    """All of the group below this number is settled, or over."""
    exhausted: int | None = None
    """The message that has used up its deliveries and holds up the rest."""
    moving: int | None = None
    remaining_ms: int | None = None
    """In how long the first hidden one is not hidden any more."""


def judge(lane: Lane, group: str, state: State, at: Present, most: int) -> Judged:
    """Up to `most` messages of a group that may be delivered together, in order."""
    judged = Judged()
    index = lane.view.index
    state = state.settled_below(index.first)
    leading = True
    for number in index.waiting.get(group, ()):
        if state.settled(number):
            continue
        entry = state.touched.get(number)
        if entry is None:
            due_at = index.date_of(number) + lane.settings.delay_ms
            if number >= at.purged and not _is_over(due_at, at):
                if due_at > at.now_ms:
                    judged.remaining_ms = due_at - at.now_ms
                    break
                held = sum(place >= judged.settled_below for place in state.touched)
                if len(judged.deliverable) >= most or held + len(judged.deliverable) >= limits.GROUP_TOUCHED:
                    break
                judged.deliverable.append(number)
                leading = False
                continue
        else:
            if entry.settled == MOVING:
                judged.moving = number
                break
            if number >= at.purged:
                if (remaining_ms := remaining(lane, group, entry, at)) > 0:
                    judged.remaining_ms = remaining_ms
                    break
                if not _is_over(index.date_of(number) + lane.settings.delay_ms, at):
                    if at.limit is not None and entry.delivery >= at.limit:
                        judged.exhausted = number if leading else None
                        break
                    if len(judged.deliverable) >= most:
                        break
                    judged.deliverable.append(number)
                    leading = False
                    continue
        if leading:
            judged.settled_below = number + 1
    return judged


def remaining(lane: Lane, group: str, entry: Entry, at: Present) -> int:
    """How long a delivered message is still hidden: by the clock or by watching, whichever ends first."""
    by_clock = entry.visible_at - at.now_ms
    if by_clock <= 0:
        return 0
    return min(by_clock, max(0, entry.duration - lane.view.watch(group, entry, at.now)))


def _is_over(due_at: int, at: Present) -> bool:
    return at.over_before is not None and due_at <= at.over_before
