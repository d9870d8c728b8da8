"""Bury: what a deleted queue held is dropped, a portion at a time, long after its name was free again."""

from __future__ import annotations

import json

from angelhair import limits
from angelhair.engine import catalog, places
from angelhair.engine.delays import bury_line
from angelhair.engine.lives import LIVES, Life
from angelhair.engine.marks import pointer_marks
from angelhair.engine.settling import change_one
from angelhair.engine.store import NOTHING, Applied, Change, Row, RowChange, Span, Store
from angelhair.model import BUCKETED, HIDDEN


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
    kind = str(grave.values.get("kind") or BUCKETED)
    life, account = LIVES[kind], str(grave.values["account"])
    if kind == BUCKETED and not account.startswith(HIDDEN):
        await bury_line(store, account, incarnation)
    for lane in lanes:
        if await life.drop_some(store, incarnation, lane):
            return
        if await _drop_portion(store, life, incarnation, lane, bucket_size):
            return
    if await catalog.forget_lanes(store, incarnation, lanes):
        await change_one(store, Change(places.GRAVEYARD, [RowChange(incarnation, {}, None)]))


async def _drop_portion(store: Store, life: Life, incarnation: str, lane: int, bucket_size: int) -> bool:
    """Drops some buckets of a lane and notes how far it came. True when the lane still holds something."""
    marked = places.pointers(incarnation, lane)
    sequence, pointers = await store.read([Span(places.sequence(incarnation, lane)), Span(marked)])
    if not pointers.rows:
        return False
    marks = pointer_marks(pointers)
    end = life.buckets(sequence.rows[0].values if sequence.rows else NOTHING, bucket_size)
    last = min(end, marks.dropped + limits.DROP_BUCKETS)
    if marks.dropped >= last:
        return False
    if marks.floor < end:
        # As always, the floor first: a receive that slept through the deletion finds it raised and delivers nothing.
        row = RowChange("floor", {"value": marks.floor}, {"value": end})
        if not isinstance(await change_one(store, Change(marked, [row])), Applied):
            return True
    gone = await life.remains(store, incarnation, lane, marks, range(marks.dropped, last))
    if all(outcome is None for outcome in await store.drop(gone)):
        row = RowChange("dropped", {"value": marks.dropped}, {"value": last})
        await change_one(store, Change(marked, [row]))
    return True
