"""Bury: what a deleted queue held is dropped, a portion at a time, long after its name was free again."""

from __future__ import annotations

import json

from angelhair import limits
from angelhair.engine import catalog, places
from angelhair.engine.bucketed.lane import pointer_marks
from angelhair.engine.settling import change_one
from angelhair.engine.store import Change, Row, RowChange, Span, Store


async def bury_step(store: Store) -> bool:
    """Drops one portion of one deleted queue. True when there is more to do."""
    (graves,) = await store.read([Span(places.GRAVEYARD, limit=1)])
    if not graves.rows:
        return False
    incarnation = str(graves.rows[0].key)
    if not await _is_dead(store, graves.rows[0]):
        # A deletion that was begun and not carried out: the queue lives, and its grave waits empty.
        await change_one(store, Change(places.GRAVEYARD, [RowChange(incarnation, {}, None)]))
        return True
    lanes: list[int] = json.loads(str(graves.rows[0].values["lanes"]))
    bucket_size = graves.rows[0].values["bucket_size"]
    assert isinstance(bucket_size, int)
    for lane in lanes:
        if await _drop_portion(store, incarnation, lane, bucket_size):
            return True
    if await catalog.drop_lanes(store, incarnation, lanes):
        await change_one(store, Change(places.GRAVEYARD, [RowChange(incarnation, {}, None)]))
    return True


async def _is_dead(store: Store, grave: Row) -> bool:
    queue = await catalog.load(store, str(grave.values["account"]), str(grave.values["name"]))
    return queue is None or queue.incarnation != grave.key


async def _drop_portion(store: Store, incarnation: str, lane: int, bucket_size: int) -> bool:
    """Drops some buckets of a lane and notes how far it came. True when the lane still holds something."""
    sequence, pointers = await store.read(
        [Span(places.sequence(incarnation, lane)), Span(places.pointers(incarnation, lane))]
    )
    next_id = sequence.rows[0].values.get("next") if sequence.rows else None
    marks = pointer_marks(pointers)
    end = -(-next_id // bucket_size) if isinstance(next_id, int) else 0
    last = min(end, marks.dropped + limits.DROP_BUCKETS)
    if marks.dropped >= last:
        return False
    gone = []
    for bucket in range(marks.dropped, last):
        gone += [places.bodies(incarnation, lane, bucket), places.states(incarnation, lane, bucket)]
    newest = places.wake_period(marks.wake_raised) + 1
    gone += [places.wakes(incarnation, lane, period) for period in range(marks.wake_dropped, newest + 1)]
    if all(outcome is None for outcome in await store.drop(gone)):
        row = RowChange("dropped", {"value": marks.dropped}, {"value": last})
        await change_one(store, Change(places.pointers(incarnation, lane), [row]))
    return True
