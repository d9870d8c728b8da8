"""Bury: what a deleted queue held is dropped, a portion at a time, long after its name was free again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from angelhair import limits
from angelhair.engine import catalog, places
from angelhair.engine.bucketed.lane import pointer_marks
from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.settling import change_one
from angelhair.engine.store import Applied, Change, Partition, Row, RowChange, Span, Store


async def bury_step(store: Store) -> bool:
    """Drops one portion of one deleted queue. True when there is more to do."""
    (graves,) = await store.read([Span(places.GRAVEYARD, limit=limits.GRAVES)])
    for grave in graves.rows:
        if await _is_dead(store, grave):
            await _bury(store, grave)
            return True
    return False


async def _is_dead(store: Store, grave: Row) -> bool:
    """Whether the grave's queue is gone. A deletion that was begun is finished here if its server did not live to."""
    incarnation = str(grave.key)
    queue = await catalog.load(store, str(grave.values["account"]), str(grave.values["name"]))
    if queue is None or queue.incarnation != incarnation:
        return True
    buried_at = grave.values["buried_at"]
    assert isinstance(buried_at, int)
    if await store.time_ms() - buried_at < limits.GRAVE_PATIENCE_MS:
        return False
    if queue.status == catalog.DELETING or not await catalog.lives(store, queue):
        await catalog.finish_deleting(store, queue)
        return True
    # Dug by somebody who then died before deleting anything: the queue lives, unless it is dug again right now.
    await change_one(store, Change(places.GRAVEYARD, [RowChange(incarnation, {"buried_at": buried_at}, None)]))
    return False


async def _bury(store: Store, grave: Row) -> None:
    incarnation = str(grave.key)
    lanes: list[int] = json.loads(str(grave.values["lanes"]))
    bucket_size = grave.values["bucket_size"]
    assert isinstance(bucket_size, int)
    for lane in lanes:
        if await _drop_portion(store, incarnation, lane, bucket_size):
            return
    if await catalog.forget_lanes(store, incarnation, lanes):
        await change_one(store, Change(places.GRAVEYARD, [RowChange(incarnation, {}, None)]))


async def _drop_portion(store: Store, incarnation: str, lane: int, bucket_size: int) -> bool:
    """Drops some buckets of a lane and notes how far it came. True when the lane still holds something."""
    sequence, pointers = await store.read(
        [Span(places.sequence(incarnation, lane)), Span(places.pointers(incarnation, lane))]
    )
    if not pointers.rows:
        return False
    next_id = sequence.rows[0].values.get("next") if sequence.rows else None
    marks = pointer_marks(pointers)
    end = -(-next_id // bucket_size) if isinstance(next_id, int) else 0
    last = min(end, marks.dropped + limits.DROP_BUCKETS)
    if marks.dropped >= last:
        return False
    if marks.floor < end:
        # As always, the floor first: a receive that slept through the deletion finds it raised and delivers nothing.
        row = RowChange("floor", {"value": marks.floor}, {"value": end})
        if not isinstance(await change_one(store, Change(places.pointers(incarnation, lane), [row])), Applied):
            return True
    gone = []
    for bucket in range(marks.dropped, last):
        gone += [places.bodies(incarnation, lane, bucket), places.states(incarnation, lane, bucket)]
    periods = await _wake_periods(store, gone)
    newest = places.wake_period(marks.wake_raised + places.wake_slot(limits.LOOK_AGAIN_MAXIMUM_MS)) + 1
    periods.update(range(marks.wake_dropped, newest + 1))
    gone += [places.wakes(incarnation, lane, period) for period in sorted(periods)]
    if all(outcome is None for outcome in await store.drop(gone)):
        row = RowChange("dropped", {"value": marks.dropped}, {"value": last})
        await change_one(store, Change(places.pointers(incarnation, lane), [row]))
    return True


async def _wake_periods(store: Store, buckets: Sequence[Partition]) -> set[int]:
    """Where the wake rows of these buckets may lie: a delay or a time-out can reach years ahead."""
    columns = {BODIES: ("visible_from",), STATES: ("visible_at",)}
    found = await store.read([Span(partition, columns=columns[partition.table]) for partition in buckets])
    times = [value for part in found for row in part.rows for value in row.values.values() if isinstance(value, int)]
    periods = {places.wake_period(places.wake_slot(time)) for time in times}
    # Clocks differ a little, and entries that the marks had passed were written again above them.
    return {period + step for period in periods for step in (-1, 0, 1)}
