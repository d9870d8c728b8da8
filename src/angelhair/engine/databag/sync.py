"""The sync: settings and the number of partitions that are in force on this server, taken over now and then (D4).

The number of partitions is a mark of the databag's, so that servers cut alike; it is moved by whoever sees a reason,
between the bounds. That servers do not agree for a while does no harm: locks are on slices (R15).
"""

from __future__ import annotations

from angelhair.engine.databag.behind import some_wait
from angelhair.engine.databag.lane import Bag
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, RowChange, Span
from angelhair.model import QueueSettings

MARK = "partitions"
"""Nobody has moved it as long as it is 0."""

MOSTLY_EMPTY = 4
"""Of so many partitions that were looked at all but one were empty: so many fewer would do."""


def bounded(partitions: int, settings: QueueSettings) -> int:
    return max(settings.min_partitions, min(partitions, settings.max_partitions))


async def take_over(bag: Bag, settings: QueueSettings, asked_ms: int, turn: int) -> None:
    """Puts in force what was stored when it was asked for; and first moves the number, if there is a reason."""
    view = bag.view
    (found,) = await bag.store.read([Span(bag.pointers, MARK, MARK)])
    stored = found.rows[0].values.get("value") if found.rows else 0
    now = bounded(stored if isinstance(stored, int) else 0, settings)
    wanted = await _wanted(bag, now, settings)
    if wanted != now:
        row = RowChange(MARK, {"value": stored}, {"value": wanted})
        if isinstance(await change_one(bag.store, Change(bag.pointers, [row])), Applied):
            now = wanted
    if turn < view.sync_taken:
        # One that began later was faster.
        return
    view.sync_taken = turn
    view.settings = settings
    view.cut_into(now)
    view.starved = view.looked = view.found_empty = 0
    view.hindered = False
    view.synced_ms = asked_ms


async def _wanted(bag: Bag, now: int, settings: QueueSettings) -> int:
    """Twice as many if somebody found nothing unlocked while messages wait; half if most were empty (D4), unless what
    is not empty is all locked."""
    view = bag.view
    more = bounded(2 * now, settings)
    if more != now and (view.starved or (view.hindered and await some_wait(bag, surely=True))):
        return more
    if view.starved:
        return now
    full = view.looked - view.found_empty
    fewer = bounded(now // 2, settings)
    if fewer == now or view.looked < now or full * MOSTLY_EMPTY >= view.looked or await some_wait(bag, surely=False):
        return now
    return fewer
